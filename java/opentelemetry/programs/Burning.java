package programs;

import io.opentelemetry.api.trace.Span;

/**
 * Methods that burn CPU time and by which samples are identified, and the expected labels of their samples.
 */
final class Burning {
    private static volatile long sink;

    private Burning() {}

    /**
     * Prints that samples in {@code method} have this span's link and this endpoint: {@code METHOD TRACE_ID
     * SPAN_ID ENDPOINT}.
     */
    static void announce(String method, Span span, String endpoint) {
        String ids = span.getSpanContext().getTraceId() + " " + span.getSpanContext().getSpanId();
        System.out.println(method + " " + ids + " " + endpoint);
    }

    static void outside() {
        burn();
    }

    static void outer() {
        burn();
    }

    static void inner() {
        burn();
    }

    static void second() {
        burn();
    }

    static void wrapped() {
        burn();
    }

    static void child() {
        burn();
    }

    static void virtual() {
        burn();
    }

    static void ended() {
        burn();
    }

    static void unrouted() {
        burn();
    }

    static void routed() {
        burn();
    }

    static void client() {
        burn();
    }

    static void orders() {
        burn();
    }

    static void payment() {
        burn();
    }

    /** Works for ten milliseconds, and longer if the thread waits for a processor for most of them. */
    private static void burn() {
        long end = System.nanoTime() + 10_000_000;
        for (int i = 0; System.nanoTime() < end || i < 50_000; i++) {
            sink = sink * 31 + 7;
        }
    }
}
