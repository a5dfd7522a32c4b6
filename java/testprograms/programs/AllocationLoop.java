package programs;

/** Allocates arrays of a kilobyte: {@code AllocationLoop SECONDS}. Prints their number. */
public final class AllocationLoop {
    private static volatile Object sink;

    private AllocationLoop() {}

    public static void main(String[] args) {
        long end = System.nanoTime() + (long) (Double.parseDouble(args[0]) * 1e9);
        long count = 0;
        while (System.nanoTime() < end) {
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
