package io.otlpprof.opentelemetry;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What is set where a span becomes the current one, read from it once.
 *
 * <p>It is found for as long as somebody has the span: one that has ended can still be the current one. Spans are told
 * apart by their identity, whatever their class takes for equal.
 */
final class KnownSpan extends WeakReference<Span> {
    private static final ConcurrentHashMap<Object, KnownSpan> ALL = new ConcurrentHashMap<>();
    private static final ReferenceQueue<Span> GONE = new ReferenceQueue<>();

    private static final int RECENT_SPANS = 1024;

    /** By the lowest bits of their hash, found with fewer calls. All threads read and write it as they please. */
    private static final KnownSpan[] RECENT = new KnownSpan[RECENT_SPANS];

    /** Whether spans are told; if not, endpoints are the program's own affair. Here, because there may be no SDK. */
    static volatile boolean areTold;

    final long traceIdHigh;
    final long traceIdLow;
    final long spanId;
    final int flags;

    /** Null if nobody asked for the span's work, or it is not known who did. */
    final LocalRoot root;

    private final int hash;

    private KnownSpan(Span span, LocalRoot root) {
        super(span, GONE);
        SpanContext ids = span.getSpanContext();
        traceIdHigh = Long.parseUnsignedLong(ids.getTraceId().substring(0, 16), 16);
        traceIdLow = Long.parseUnsignedLong(ids.getTraceId().substring(16), 16);
        spanId = Long.parseUnsignedLong(ids.getSpanId(), 16);
        flags = ids.getTraceFlags().asByte();
        this.root = root;
        hash = System.identityHashCode(span);
    }

    /** From now on it is known. */
    static void add(Span span, LocalRoot root) {
        for (Reference<?> gone = GONE.poll(); gone != null; gone = GONE.poll()) {
            ALL.remove(gone);
        }
        KnownSpan known = new KnownSpan(span, root);
        ALL.put(known, known);
    }

    /** Null if it is not known. */
    static KnownSpan of(Span span) {
        int index = System.identityHashCode(span) & RECENT_SPANS - 1;
        KnownSpan recent = RECENT[index];
        if (recent != null && recent.get() == span) {
            return recent;
        }
        KnownSpan known = ALL.get(new Asked(span));
        if (known != null) {
            RECENT[index] = known;
        }
        return known;
    }

    @Override
    public int hashCode() {
        return hash;
    }

    @Override
    public boolean equals(Object other) {
        return this == other;
    }

    /** Is equal to what is known of its span. */
    private static final class Asked {
        private final Span span;

        Asked(Span span) {
            this.span = span;
        }

        @Override
        public int hashCode() {
            return System.identityHashCode(span);
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof KnownSpan && ((KnownSpan) other).get() == span;
        }
    }
}
