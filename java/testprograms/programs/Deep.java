package programs;

/**
 * Burns CPU at the bottom of a stack of known depth: {@code Deep java|native DEPTH MILLISECONDS}. The frames
 * are of this class, or of libddproftest below a few of this class.
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
            // Not a tail call, since the result is mixed once more.
            return Work.mix(descend(depth - 1, rounds));
        }
        long value = rounds;
        for (int round = 0; round < rounds; round++) {
            value = Work.mix(value);
        }
        return value;
    }
}
