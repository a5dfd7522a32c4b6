package programs;

import io.otlpprof.Otlpprof;

/**
 * Allocates known amounts of native memory at known places: {@code NativeMemory LIBRARY [virtual|OPTIONS]}.
 * LIBRARY is the path of liballocating. Each line is {@code FUNCTION SIZE BYTES ALLOCATIONS KEPT_BYTES
 * KEPT_ALLOCATIONS}, with the size of the function's smallest allocation.
 *
 * <p>With {@code virtual} a virtual thread allocates. With options the agent is stopped first, started with
 * the options and stopped again. A line reports each time whether the library's calls were redirected to the
 * agent: {@code led true}.
 */
public final class NativeMemory {
    private static final int ROUNDS = 100;

    private static String library;

    private NativeMemory() {}

    public static void main(String[] args) throws Exception {
        library = args[0];
        boolean virtual = args.length > 1 && args[1].equals("virtual");
        if (args.length > 1 && !virtual) {
            restart(args[1]);
        } else {
            Threads.start(virtual, "native-memory", NativeMemory::all).join();
        }
    }

    private static long call(String function, long count) {
        return Native.call(library, "allocating_" + function, count);
    }

    private static boolean isRedirected() {
        return call("is_redirected", 0) != 0;
    }

    /** Waits until the library's calls are redirected to the agent, for at most 60 seconds. */
    private static void waitUntilRedirected() {
        for (int i = 0; i < 6_000 && !isRedirected(); i++) {
            pause(10);
        }
    }

    private static void restart(String options) {
        Otlpprof profiler = Otlpprof.getInstance();
        waitUntilRedirected();
        System.out.println("led " + isRedirected());
        profiler.stop();
        System.out.println("led " + isRedirected());
        profiler.start(options);
        System.out.println("led " + isRedirected());
        call("leaked", 10);
        profiler.stop();
        System.out.println("led " + isRedirected());
    }

    private static void all() {
        waitUntilRedirected();
        if (!isRedirected()) {
            throw new AssertionError("the library's calls do not lead to the agent");
        }
        // The functions take turns, so that each allocates before and after every other. The pauses keep
        // samples from being written faster than they are drained.
        for (int round = 0; round < ROUNDS; round++) {
            call("small", 8_500);
            call("medium", 250);
            call("large", 5);
            pause(5);
            call("zeroed", 250);
            call("grown", 250);
            call("aligned", 250);
            call("mapped", 3);
            pause(5);
            call("leaked", 250);
            call("leaked_shrunk", 250);
            call("leaked_mapped", 1);
            call("handed_over", 250);
            pause(5);
        }
        report("small", 48, 8_500, 48, 1, 0);
        report("medium", 1_000, 250, 1_000, 1, 0);
        report("large", 300_000, 5, 300_000, 1, 0);
        report("zeroed", 1_000, 250, 1_000, 1, 0);
        report("grown", 1_000, 250, 3_000, 2, 0);
        report("aligned", 1_000, 250, 3_024, 3, 0);
        report("mapped", 1 << 20, 3, 1 << 20, 1, 0);
        report("leaked", 1_000, 250, 1_000, 1, 1_000);
        report("leaked_shrunk", 1_000, 250, 3_000, 2, 1_000);
        report("leaked_mapped", 1 << 20, 1, 1 << 20, 1, (1 << 20) / 4 * 3);
        report("handed_over", 1_000, 250, 1_000, 1, 0);
        // Kept memory is reported at the end of an interval. The other memory of the last round has been
        // freed by then.
        pause(50);
    }

    private static void report(
            String function, long size, long count, long bytes, long allocations, long kept) {
        long all = count * ROUNDS;
        System.out.println("allocating_" + function + " " + size + " " + bytes * all + " "
                + allocations * all + " " + kept * all + " " + (kept == 0 ? 0 : all));
    }

    private static void pause(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
