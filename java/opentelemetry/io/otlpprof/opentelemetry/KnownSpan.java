package io.otlpprof.opentelemetry;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * What is set where a span becomes the current one, read from it once.
 *
 * <p>It is found for as long as somebody has the span, and while the span is one of the last that have ended: one that has
 * can still be the current one. To leave all that have ended to the garbage collector would cost several times what a span
 * does. What has a span's ids alone ({@code Span.wrap}) is that span, unless they have come in from another process.
 */
final class KnownSpan extends WeakReference<Span> {
    private static final ConcurrentHashMap<Ids, KnownSpan> ALL = new ConcurrentHashMap<>();
    private static final ReferenceQueue<Span> GONE = new ReferenceQueue<>();

    private static final int ENDED_SPANS = 4096;

    /** A ring: whoever takes a place has the one that was there before forgotten. */
    private static final AtomicReferenceArray<KnownSpan> ENDED = new AtomicReferenceArray<>(ENDED_SPANS);

    private static final AtomicInteger NEXT_ENDED = new AtomicInteger();

    private static final int RECENT_SPANS = 1024;

    /** By the lowest bits of their span's identity, found with fewer calls. All threads read and write it as they please. */
    private static final KnownSpan[] RECENT = new KnownSpan[RECENT_SPANS];

    /** Whether spans are told; if not, endpoints are the program's own affair. Here, because there may be no SDK. */
    static volatile boolean areTold;

    final long traceIdHigh;
    final long traceIdLow;
    final long spanId;
    final int flags;

    /** Null if nobody asked for the span's work, or it is not known who did. */
    final LocalRoot root;

    private final Ids ids;

    private KnownSpan(Span span, LocalRoot root) {
        super(span, GONE);
        SpanContext context = span.getSpanContext();
        ids = new Ids(context);
        traceIdHigh = Long.parseUnsignedLong(ids.traceId.substring(0, 16), 16);
        traceIdLow = Long.parseUnsignedLong(ids.traceId.substring(16), 16);
        spanId = Long.parseUnsignedLong(ids.spanId, 16);
        flags = context.getTraceFlags().asByte();
        this.root = root;
    }

    /** From now on it is known. */
    static void add(Span span, LocalRoot root) {
        for (Reference<?> gone = GONE.poll(); gone != null; gone = GONE.poll()) {
            KnownSpan known = (KnownSpan) gone;
            ALL.remove(known.ids, known);
        }
        KnownSpan known = new KnownSpan(span, root);
        ALL.put(known.ids, known);
    }

    /** Its span has ended. */
    void end() {
        KnownSpan before = ENDED.getAndSet(NEXT_ENDED.getAndIncrement() & ENDED_SPANS - 1, this);
        if (before != null) {
            ALL.remove(before.ids, before);
        }
    }

    /** Null if it is not known. */
    static KnownSpan of(Span span) {
        int index = System.identityHashCode(span) & RECENT_SPANS - 1;
        KnownSpan recent = RECENT[index];
        if (recent != null && recent.get() == span) {
            return recent;
        }
        SpanContext context = span.getSpanContext();
        KnownSpan known = context.isRemote() ? null : ALL.get(new Ids(context));
        if (known != null && known.get() == span) {
            RECENT[index] = known;
        }
        return known;
    }

    /** What makes a span that span. */
    private static final class Ids {
        final String traceId;
        final String spanId;

        Ids(SpanContext context) {
            traceId = context.getTraceId();
            spanId = context.getSpanId();
        }

        @Override
        public int hashCode() {
            return spanId.hashCode();
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Ids
                    && ((Ids) other).spanId.equals(spanId)
                    && ((Ids) other).traceId.equals(traceId);
        }
    }
}
