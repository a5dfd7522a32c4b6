package programs;

/**
 * Pthreads of a native library that are never attached to the JVM: {@code NativePthreads [SECONDS
 * [THREADS]]}. Each round burns on all threads at once, then on a series of short-lived ones.
 */
public final class NativePthreads {
    private NativePthreads() {}

    public static void main(String[] args) {
        Clock clock = new Clock(args, 5);
        int threads = args.length > 1 ? Integer.parseInt(args[1]) : 2;
        while (clock.isRunning()) {
            check(Native.pthreads(threads, 200));
            check(Native.shortPthreads(20, 1_000_000));
        }
    }

    private static void check(int errno) {
        if (errno != 0) {
            throw new IllegalStateException("pthread_create: errno " + errno);
        }
    }
}
