package programs;

/**
 * Native code whose caller cannot be found: {@code BrokenStacks SECONDS}. Below Java methods, and on threads that the
 * JVM knows nothing of, in turn, until the process has used so much CPU time.
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
