package programs;

/**
 * Allocates arrays of a kilobyte: {@code AllocationLoop SECONDS}. Prints their number. Takes longer if the
 * program waits for a processor most of the time: the number is at least half a million.
 */
public final class AllocationLoop {
    private static final long LEAST = 500_000;
    private static volatile Object sink;

    private AllocationLoop() {}

    public static void main(String[] args) {
        long end = System.nanoTime() + (long) (Double.parseDouble(args[0]) * 1e9);
        long count = 0;
        while (System.nanoTime() < end || count < LEAST) {
            allocate();
            count += 100;
        }
        System.out.println(count);
    }

    private static void allocate() {
        for (int i = 0; i < 100; i++) {
            sink = new byte[1024];
        }
    }
}
