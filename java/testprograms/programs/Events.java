package programs;

import io.otlpprof.ContextSetter;
import io.otlpprof.DurationEvent;
import io.otlpprof.Otlpprof;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;

/**
 * Records events: {@code Events filter|all}. Two threads burn a fixed CPU time; one of them, "chosen",
 * registers itself meanwhile.
 */
public final class Events {
    private static final Otlpprof PROFILER = Otlpprof.getInstance();
    private static final ContextSetter CONTEXT = new ContextSetter(PROFILER, List.of("tenant"));

    private static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();

    private Events() {}

    public static void main(String[] args) throws Exception {
        Thread chosen = new Thread(() -> burn(true), "chosen");
        Thread other = new Thread(() -> burn(false), "other");
        chosen.start();
        other.start();
        report();
        chosen.join();
        other.join();
        System.out.println("done");
    }

    @SuppressWarnings("try")
    private static void report() {
        String trace = "0af7651916cd43dd8448eb211c80319c";
        check(PROFILER.recordTraceRoot(trace, "b7ad6b7169203331", "/cart/{id}", "GET"));
        check(PROFILER.recordTraceRoot(trace, "b7ad6b7169203331", "/cart/{id}", "GET"));
        check(PROFILER.recordTraceRoot(1, 2, 3, "/other", null));
        check(!PROFILER.recordTraceRoot(trace, "no id, nor hex..", "/", null));
        check(!PROFILER.recordTraceRoot(trace, "0000000000000000", "/", null));
        // Java's parsers of numbers accept these texts.
        check(!PROFILER.recordTraceRoot(trace, "+7ad6b7169203331", "/", null));
        check(!PROFILER.recordTraceRoot(trace, "b7ad6b716920333\u0661", "/", null));
        check(!PROFILER.recordTraceRoot(null, "b7ad6b7169203331", "/", null));
        for (int i = 0; i < 3; i++) {
            check(PROFILER.recordQueueTime(
                    100,
                    1100,
                    Events.class,
                    Thread.class,
                    ArrayBlockingQueue.class,
                    37,
                    Thread.currentThread()));
        }
        check(PROFILER.recordQueueTime(5, 4, Events.class, Thread.class, null, -1, null));
        CONTEXT.setTraceContext(7, 8, 9, 1);
        CONTEXT.setAttribute("tenant", "acme");
        check(PROFILER.recordDuration("db.query", 1000, 3000));
        check(PROFILER.recordDuration("db.query", 1000, 4000));
        CONTEXT.clear();
        try (DurationEvent event = PROFILER.openDuration("render")) {
            burn(2);
        }
    }

    private static void burn(boolean registers) {
        check(!registers || PROFILER.addThread());
        burn(600);
        check(!registers || PROFILER.removeThread());
        removed();
    }

    private static void removed() {
        burn(300);
    }

    private static void burn(long millis) {
        long end = CLOCK.getCurrentThreadCpuTime() + millis * 1_000_000;
        long x = millis;
        while (CLOCK.getCurrentThreadCpuTime() < end) {
            for (int i = 0; i < 1000; i++) {
                x = Work.mix(x);
            }
        }
        Work.sink = x;
    }

    private static void check(boolean done) {
        if (!done) {
            throw new AssertionError();
        }
    }
}
