package programs;

import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.util.List;

/**
 * Short-lived threads, one after the other: {@code ContextShortThreads THREADS}. Every second one sets a
 * context. Waits for an agent to be attached, and reports it. Blocks of ended threads are reused by later
 * threads.
 */
public final class ContextShortThreads {
    private ContextShortThreads() {}

    public static void main(String[] args) throws InterruptedException {
        int count = Integer.parseInt(args[0]);
        System.out.println("ready");
        while (!Otlpprof.getInstance().isAvailable()) {
            Thread.sleep(10);
        }
        ContextSetter setter = new ContextSetter(Otlpprof.getInstance(), List.of("rest_endpoint"));
        for (int i = 0; i < count; i += 2) {
            int number = i & 6;
            Thread[] threads = {
                new Thread(() -> burnWith(setter, "/e" + number), "with-" + number),
                new Thread(() -> burn(), "without")
            };
            for (Thread thread : threads) {
                thread.start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
        }
        System.out.println("done");
    }

    private static void burnWith(ContextSetter setter, String endpoint) {
        setter.setAttribute(0, endpoint);
        setter.setTraceContext(1, 1, 1, 1);
        burn();
    }

    private static void burn() {
        long x = Work.sink;
        for (int i = 0; i < 200_000; i++) {
            x = Work.mix(x);
        }
        Work.sink = x;
    }
}
