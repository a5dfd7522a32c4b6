package programs;

import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.util.List;

/**
 * Virtual threads that record events: {@code VirtualEvents THREADS}. Every second one has a context. All
 * yield before they record, so that each runs on a carrier that another thread has left.
 */
public final class VirtualEvents {
    private static final Otlpprof PROFILER = Otlpprof.getInstance();
    private static final ContextSetter CONTEXT = new ContextSetter(PROFILER, List.of("tenant"));

    private VirtualEvents() {}

    public static void main(String[] args) throws Exception {
        Thread[] threads = new Thread[Integer.parseInt(args[0])];
        for (int i = 0; i < threads.length; i++) {
            int number = i;
            threads[i] = Threads.startVirtual(() -> report(number));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("done");
    }

    private static void report(int number) {
        boolean hasContext = number % 2 == 0;
        if (hasContext) {
            CONTEXT.setTraceContext(1, 2, number + 1, 1);
            CONTEXT.setAttribute(0, "tenant" + number);
        }
        Thread.yield();
        if (!PROFILER.recordDuration(hasContext ? "with" + number : "alone", 0, 1000)) {
            throw new AssertionError("not recorded");
        }
    }
}
