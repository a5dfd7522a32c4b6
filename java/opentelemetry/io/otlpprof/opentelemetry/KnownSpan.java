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
 * Cache: the values to set when a span becomes the current one, read from the span once.
 *
 * <p>An entry is found for as long as the span is referenced elsewhere, and while the span is one of the last
 * that have ended, since an ended span can still be the current one. Leaving all ended spans to the garbage
 * collector would cost several times as much as a span itself. An object with a span's ids only ({@code
 * Span.wrap}) counts as that span, unless the ids have come from another process.
 */
final class KnownSpan extends WeakReference<Span> {
    private static final ConcurrentHashMap<Ids, KnownSpan> ALL = new ConcurrentHashMap<>();
    private static final ReferenceQueue<Span> GONE = new ReferenceQueue<>();

    private static final int ENDED_SPANS = 4096;

    /** A ring: an entry that takes a place makes the previous entry of that place be forgotten. */
    private static final AtomicReferenceArray<KnownSpan> ENDED = new AtomicReferenceArray<>(ENDED_SPANS);

    private static final AtomicInteger NEXT_ENDED = new AtomicInteger();

    private static final int RECENT_SPANS = 1024;

    /**
     * Cache: entries by the lowest bits of their span's identity hash, found with fewer calls. All threads
     * read and write the array without synchronization.
     */
    private static final KnownSpan[] RECENT = new KnownSpan[RECENT_SPANS];

    /**
     * Whether spans are reported to {@link LocalRootProcessor}. If not, endpoints are left to the program.
     * The field is in this class because there may be no SDK.
     */
    static volatile boolean hasProcessor;

    final long traceIdHigh;
    final long traceIdLow;
    final long spanId;
    final int flags;

    /** Null if no request caused the span's work, or the request is unknown. */
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

    /** Adds an entry for a span. */
    static void add(Span span, LocalRoot root) {
        for (Reference<?> gone = GONE.poll(); gone != null; gone = GONE.poll()) {
            KnownSpan known = (KnownSpan) gone;
            ALL.remove(known.ids, known);
        }
        KnownSpan known = new KnownSpan(span, root);
        ALL.put(known.ids, known);
    }

    /** Notes that the span has ended. */
    void end() {
        KnownSpan before = ENDED.getAndSet(NEXT_ENDED.getAndIncrement() & ENDED_SPANS - 1, this);
        if (before != null) {
            ALL.remove(before.ids, before);
        }
    }

    /** Returns the entry of a span; null if it is unknown. */
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

    /** The ids by which a span is identified. */
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
