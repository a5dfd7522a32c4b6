package programs;

import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.lang.management.ManagementFactory;
import java.util.List;

/**
 * Threads with trace and span ids in all forms that users write. Each burns for a while and is named for its
 * form. Prints the result of each call.
 */
public final class ContextIdForms {
    private static final String HALF = "b7ad6b7169203331";
    private static final String WHOLE = "0af7651916cd43dd8448eb211c80319c";
    private static final String SPAN = "00f067aa0ba902b7";
    private static final long WORK_NS = 200_000_000;

    private static final Otlpprof PROFILER = Otlpprof.getInstance();
    private static final ContextSetter CONTEXT = new ContextSetter(PROFILER, List.of("traceid", "spanid"));

    private ContextIdForms() {}

    public static void main(String[] args) throws Exception {
        run("text", () -> attributes("trace1", "span1"));
        run("half", () -> CONTEXT.setTraceContext(HALF, SPAN, 1));
        run("half-attributes", () -> attributes(HALF, SPAN));
        run("text-then-ids", () -> attributes("trace1", "span1") && attributes(WHOLE, SPAN));
        run("ids-then-text", () -> attributes(WHOLE, SPAN) && attributes("trace1", "span1"));
        run("cleared", () -> attributes("trace1", "span1") && attributes(null, null));
        for (int turn = 0; turn < 3; turn++) {
            run("refused", () -> CONTEXT.setTraceContext("trace1", SPAN, 1));
            run("root", () -> PROFILER.recordTraceRoot("trace1", "span1", "/cart", null));
        }
        // A null id, or one of zeros, means that there is no span.
        run("null", () -> CONTEXT.setTraceContext(null, null, 0));
        run("zero", () -> CONTEXT.setTraceContext("0".repeat(32), "0".repeat(16), 0));
        run("long", () -> CONTEXT.setAttribute("traceid", "t".repeat(256)));
    }

    private static boolean attributes(String traceId, String spanId) {
        return CONTEXT.setAttribute("traceid", traceId) && CONTEXT.setAttribute("spanid", spanId);
    }

    private interface Call {
        boolean run();
    }

    private static void run(String form, Call call) throws InterruptedException {
        Thread thread = new Thread(
                () -> {
                    System.out.println(form + "=" + call.run());
                    work();
                },
                form);
        thread.start();
        thread.join();
    }

    private static void work() {
        long end = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() + WORK_NS;
        long x = 1;
        while (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() < end) {
            for (int i = 0; i < 100_000; i++) {
                x = Work.mix(x);
            }
        }
        Work.sink = x;
    }
}
