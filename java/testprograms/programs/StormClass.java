package programs;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;

/**
 * The bytes of a class whose names all contain its number: class {@code programs.Storm00042}, its only method
 * {@code static long burn00042(long, int)}, file {@code Storm00042.java}, line 42.
 */
final class StormClass {
    /** Class files before 50 need no stack maps (JVMS 4.10.2). */
    private static final int MAJOR_VERSION = 49;
    /** The largest number. A line number is an unsigned short. */
    static final int MAX_NUMBER = 65_535;

    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private final DataOutputStream out = new DataOutputStream(bytes);

    private StormClass() {}

    static String name(int number) {
        return String.format("Storm%05d", number);
    }

    static String methodName(int number) {
        return String.format("burn%05d", number);
    }

    static byte[] bytes(int number) {
        try {
            return new StormClass().write(number);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private byte[] write(int number) throws IOException {
        out.writeInt(0xcafebabe);
        out.writeShort(0);
        out.writeShort(MAJOR_VERSION);
        constantPool(number);
        out.writeShort(0x0021); // public super
        out.writeShort(2); // this class
        out.writeShort(4); // super class
        out.writeShort(0); // interfaces
        out.writeShort(0); // fields
        out.writeShort(1); // methods
        method(number);
        out.writeShort(1); // attributes
        out.writeShort(9); // SourceFile
        out.writeInt(2);
        out.writeShort(10);
        return bytes.toByteArray();
    }

    /** The trailing comments are the indices. A long takes two. */
    private void constantPool(int number) throws IOException {
        out.writeShort(13); // one more than the last index
        utf8("programs/" + name(number)); // 1
        classAt(1); // 2
        utf8("java/lang/Object"); // 3
        classAt(3); // 4
        utf8(methodName(number)); // 5
        utf8("(JI)J"); // 6
        utf8("Code"); // 7
        utf8("LineNumberTable"); // 8
        utf8("SourceFile"); // 9
        utf8(name(number) + ".java"); // 10
        out.writeByte(5); // 11 (and 12): CONSTANT_Long
        out.writeLong(6364136223846793005L);
    }

    private void utf8(String text) throws IOException {
        out.writeByte(1);
        out.writeUTF(text);
    }

    private void classAt(int nameIndex) throws IOException {
        out.writeByte(7);
        out.writeShort(nameIndex);
    }

    /** {@code do { x = x * M + (x >>> 29); } while (--n > 0); return x;} */
    private void method(int number) throws IOException {
        byte[] code = {
            0x1e, // 0: lload_0
            0x14, 0, 11, // 1: ldc2_w M
            0x69, // 4: lmul
            0x1e, // 5: lload_0
            0x10, 29, // 6: bipush 29
            0x7d, // 8: lushr
            0x61, // 9: ladd
            0x3f, // 10: lstore_0
            (byte) 0x84, 2, -1, // 11: iinc 2, -1
            0x1c, // 14: iload_2
            (byte) 0x9d, -1, -15, // 15: ifgt 0
            0x1e, // 18: lload_0
            (byte) 0xad, // 19: lreturn
        };
        out.writeShort(0x0009); // public static
        out.writeShort(5);
        out.writeShort(6);
        out.writeShort(1); // attributes
        out.writeShort(7); // Code
        out.writeInt(12 + code.length + 12);
        out.writeShort(5); // max stack
        out.writeShort(3); // max locals
        out.writeInt(code.length);
        out.write(code);
        out.writeShort(0); // exception table
        out.writeShort(1); // attributes
        out.writeShort(8); // LineNumberTable
        out.writeInt(6);
        out.writeShort(1);
        out.writeShort(0); // from bytecode 0
        out.writeShort(number);
    }
}
