package programs;

/**
 * Runs native code whose caller cannot be found, in turn below Java methods and on threads that the JVM does
 * not know, until the process has used the given CPU time: {@code BrokenStacks SECONDS}.
 */
public final class BrokenStacks {
    private static final long ROUNDS = 10_000_000;

    private BrokenStacks() {}

    public static void main(String[] args) {
        long end = Native.processCpuNanos() + (long) (Double.parseDouble(args[0]) * 1e9);
        while (Native.processCpuNanos() < end) {
            belowJava();
            int errno = Native.undescribedPthread(ROUNDS);
            if (errno != 0) {
                throw new IllegalStateException("pthread_create: errno " + errno);
            }
        }
    }

    private static void belowJava() {
        Native.undescribed(ROUNDS);
    }
}
