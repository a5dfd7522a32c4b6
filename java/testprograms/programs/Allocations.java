package programs;

/**
 * Allocates known numbers of objects of known sizes at known places, and prints them: {@code Allocations
 * [virtual]}. Each line is {@code METHOD CLASS BYTES OBJECTS}. With an argument, a virtual thread does all
 * the work.
 *
 * <p>The sizes are those of a 64-bit HotSpot with compressed class pointers and without compact headers: an
 * object's header has 12 bytes, an array's 16, and all sizes are multiples of 8.
 */
public final class Allocations {
    private Allocations() {}

    /** 16 bytes of fields after a header of 12 bytes and 4 of padding; from JDK 27 on a header of 8 bytes. */
    private static final class Small {
        long a;
        long b;
    }

    /** Objects stored here cannot be optimised away. */
    private static volatile Object sink;

    public static void main(String[] args) throws Exception {
        Threads.start(args.length > 0, "allocations", Allocations::all).join();
    }

    private static void all() {
        // The sites take turns, so that each allocates before and after every other.
        int rounds = 20;
        for (int round = 0; round < rounds; round++) {
            small(100_000);
            arrays(2_000);
            interval(1_000);
            large(3);
            interval(1_000);
            small(100_000);
        }
        int header = Runtime.version().feature() < 27 ? 16 : 8;
        report("small", "programs.Allocations$Small", header + 16, 200_000L * rounds);
        report("arrays", "int[]", 16 + 4 * 250, 2_000L * rounds);
        report("interval", "byte[]", 16 + 4080, 2_000L * rounds);
        report("large", "java.lang.Object[]", 16 + 4 * 250_000, 3L * rounds);
    }

    private static void report(String method, String type, long bytes, long objects) {
        System.out.println(method + " " + type + " " + bytes * objects + " " + objects);
    }

    private static void small(int count) {
        for (int i = 0; i < count; i++) {
            Small small = new Small();
            small.a = i;
            sink = small;
        }
    }

    private static void arrays(int count) {
        for (int i = 0; i < count; i++) {
            sink = new int[250];
        }
    }

    private static void interval(int count) {
        for (int i = 0; i < count; i++) {
            sink = new byte[4080];
        }
    }

    private static void large(int count) {
        for (int i = 0; i < count; i++) {
            sink = new Object[250_000];
        }
    }
}
