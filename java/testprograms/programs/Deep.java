package programs;

/**
 * Burns CPU at the bottom of a stack of known depth: {@code Deep java|native DEPTH MILLISECONDS}. Its frames are
 * this class's, or libddproftest's below a few of this class's.
 */
public final class Deep {
    private Deep() {}

    public static void main(String[] args) {
        boolean inNative = args[0].equals("native");
        int depth = Integer.parseInt(args[1]);
        long end = System.nanoTime() + Long.parseLong(args[2]) * 1_000_000;
        do {
            Work.sink = inNative ? Native.recurse(depth, 3_000_000) : descend(depth, 3_000_000);
        } while (System.nanoTime() < end);
    }

    private static long descend(int depth, int rounds) {
        if (depth > 1) {
            // Not a tail call: what is below is mixed once more.
            return Work.mix(descend(depth - 1, rounds));
        }
        long value = rounds;
        for (int round = 0; round < rounds; round++) {
            value = Work.mix(value);
        }
        return value;
    }
}
