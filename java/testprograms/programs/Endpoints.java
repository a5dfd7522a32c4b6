package programs;

import io.otlpprof.ContextScope;
import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.List;

/**
 * Serves two endpoints, each with a label and a trace of its own: {@code Endpoints before|after}. {@code
 * /cart} runs in {@link #price} and {@link #discount}, and {@code /search} in native code. Each of these
 * functions has a share of its thread's CPU time that is the program's own choice, whatever else the machine
 * does: after the change, {@link #price} takes as long as {@link #discount} did before, and the other way
 * round.
 */
public final class Endpoints {
    private static final ContextSetter CONTEXT =
            new ContextSetter(Otlpprof.getInstance(), List.of("endpoint"));
    private static final int ENDPOINT = CONTEXT.offsetOf("endpoint");
    private static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();

    private static final long LONG_NANOS = 500_000_000;
    private static final long SHORT_NANOS = 50_000_000;
    /** A request takes some 100 microseconds of CPU time, so that the part besides its work is small. */
    private static final long ROUNDS = 100_000;

    private Endpoints() {}

    public static void main(String[] args) throws InterruptedException {
        boolean isAfter = args[0].equals("after");
        Thread cart = new Thread(() -> {
            repeat(isAfter ? SHORT_NANOS : LONG_NANOS, () -> cart(false));
            repeat(isAfter ? LONG_NANOS : SHORT_NANOS, () -> cart(true));
        }, "cart");
        Thread search = new Thread(() -> repeat(LONG_NANOS, Endpoints::search), "search");
        cart.start();
        search.start();
        cart.join();
        search.join();
    }

    /** Serves a request again and again until the thread has used this CPU time. */
    private static void repeat(long nanos, Runnable request) {
        long end = CLOCK.getCurrentThreadCpuTime() + nanos;
        while (CLOCK.getCurrentThreadCpuTime() < end) {
            request.run();
        }
    }

    @SuppressWarnings("try") // The scope is there to be closed.
    private static void cart(boolean hasDiscount) {
        try (ContextScope scope = CONTEXT.openScope()) {
            CONTEXT.setTraceContext(0x0caL, 0x47L, 0x47L, 1, ENDPOINT, "/cart");
            if (hasDiscount) {
                discount();
            } else {
                price();
            }
        }
    }

    @SuppressWarnings("try") // The scope is there to be closed.
    private static void search() {
        try (ContextScope scope = CONTEXT.openScope()) {
            CONTEXT.setTraceContext(0x5eaL, 0x4cL, 0x4cL, 1, ENDPOINT, "/search");
            Work.sink = Native.hash(ROUNDS);
        }
    }

    private static void price() {
        long x = 1;
        for (long i = 0; i < ROUNDS; i++) {
            x = x * 6364136223846793005L + i;
        }
        Work.sink = x;
    }

    private static void discount() {
        long x = 2;
        for (long i = 0; i < ROUNDS; i++) {
            x = x * 6364136223846793005L + i;
        }
        Work.sink = x;
    }
}
