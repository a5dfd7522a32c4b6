package programs;

/** Work that no compiler shortens. */
final class Work {
    /** What the results flow into, so that no work is dead. */
    static volatile long sink;

    private Work() {}

    /** A chain of dependent operations, some nanoseconds for each round. */
    static long mix(long x) {
        x = x * 6364136223846793005L + 1442695040888963407L;
        return x ^ x >>> 29;
    }
}
