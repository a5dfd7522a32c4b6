package programs;

/**
 * Burns in functions of libddproftest that are written in assembly, in turn, until the process has used the
 * given CPU time: {@code HandWritten SECONDS FUNCTION...}.
 */
public final class HandWritten {
    private static final long ROUNDS = 3_000_000;

    private HandWritten() {}

    public static void main(String[] args) {
        long end = Native.processCpuNanos() + (long) (Double.parseDouble(args[0]) * 1e9);
        while (Native.processCpuNanos() < end) {
            for (int index = 1; index < args.length; index++) {
                burn(args[index]);
            }
        }
    }

    private static void burn(String function) {
        if (Native.call(System.getProperty("ddproftest"), function, ROUNDS) == -1) {
            throw new IllegalStateException("no function " + function);
        }
    }
}
