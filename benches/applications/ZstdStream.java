// Maven: com.github.luben:zstd-jni:1.5.6-9

import com.github.luben.zstd.Zstd;
import java.util.Arrays;
import java.util.Random;

/**
 * Compresses and decompresses text by libzstd, whose Huffman decoder is written in assembly without call
 * frame information.
 */
final class ZstdStream {
    private ZstdStream() {}

    public static void main(String[] arguments) {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        byte[] text = text(new Random(1), 1 << 20);
        while (System.nanoTime() < end) {
            for (int level : new int[] {1, 3, 6}) {
                byte[] compressed = Zstd.compress(text, level);
                for (int times = 0; times < 20; times++) {
                    if (!Arrays.equals(Zstd.decompress(compressed, text.length), text)) {
                        throw new AssertionError("level " + level);
                    }
                }
            }
        }
    }

    /** Returns digits of different frequencies: few matches, and much work for the Huffman coder. */
    private static byte[] text(Random random, int length) {
        byte[] text = new byte[length];
        for (int index = 0; index < length; index++) {
            text[index] = (byte) ('0' + Math.min(random.nextInt(10), random.nextInt(10)));
        }
        return text;
    }
}
