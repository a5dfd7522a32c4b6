package programs;

/**
 * Calls {@code reached} below stacks of which hardly two are equal: {@code RecordedStacks CALLS DEPTH}. Each
 * frame calls one of four methods, according to the bits of a number that differs for each stack.
 */
public final class RecordedStacks {
    private RecordedStacks() {}

    public static void main(String[] args) {
        int calls = Integer.parseInt(args[0]);
        int depth = Integer.parseInt(args[1]);
        for (int number = 0; number < calls; number++) {
            Work.sink = call(depth, Work.mix(Work.mix(number)));
        }
    }

    /** The method whose calls a profiler counts. */
    private static long reached(long path) {
        return Work.mix(path);
    }

    private static long call(int depth, long path) {
        if (depth == 0) {
            return reached(path);
        }
        // Rotated, so that the path never ends.
        long next = Long.rotateRight(path, 2);
        switch ((int) path & 3) {
            case 0:
                return north(depth - 1, next);
            case 1:
                return east(depth - 1, next);
            case 2:
                return south(depth - 1, next);
            default:
                return west(depth - 1, next);
        }
    }

    // These are not tail calls, since the results are mixed once more.

    private static long north(int depth, long path) {
        return Work.mix(call(depth, path));
    }

    private static long east(int depth, long path) {
        return Work.mix(call(depth, path)) + 1;
    }

    private static long south(int depth, long path) {
        return Work.mix(call(depth, path)) + 2;
    }

    private static long west(int depth, long path) {
        return Work.mix(call(depth, path)) + 3;
    }
}
