package programs;

/** Work that no compiler shortens. */
final class Work {
    /** Receives the results, so that no work is dead code. */
    static volatile long sink;

    private Work() {}

    /** A chain of dependent operations. Each round takes some nanoseconds. */
    static long mix(long x) {
        x = x * 6364136223846793005L + 1442695040888963407L;
        return x ^ x >>> 29;
    }
}
