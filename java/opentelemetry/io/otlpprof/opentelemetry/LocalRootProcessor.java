package io.otlpprof.opentelemetry;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.context.Context;
import io.opentelemetry.sdk.trace.ReadWriteSpan;
import io.opentelemetry.sdk.trace.ReadableSpan;
import io.opentelemetry.sdk.trace.SpanProcessor;
import io.otlpprof.Otlpprof;

/**
 * Finds the local root of each span, whose endpoint is the samples' label. The SDK's autoconfiguration and the Java agent
 * add it by themselves; where an SDK is made by hand, it is
 *
 * <pre>{@code
 * SdkTracerProvider.builder().addSpanProcessor(new LocalRootProcessor())
 * }</pre>
 *
 * <p>A server may find out what it serves when the request's work has begun: a label that has been set stays. Where such a
 * span ends, {@link Otlpprof#recordTraceRoot} tells what its endpoint was in the end.
 *
 * <p>Spans that the sampler drops are not shown to processors: their work has a link, and no endpoint. Without the agent it
 * asks for no spans; one that was made before the agent was loaded stays that way.
 */
public final class LocalRootProcessor implements SpanProcessor {
    private final Otlpprof profiler;

    /** A processor; one is enough. */
    public LocalRootProcessor() {
        profiler = Otlpprof.getInstance();
        KnownSpan.areTold |= profiler.isAvailable();
    }

    @Override
    public void onStart(Context parentContext, ReadWriteSpan span) {
        // Composites ask it once whether it wants to be called, and the SDK calls one that is alone whatever it says.
        if (profiler.isAvailable()) {
            KnownSpan.add(span, localRoot(parentContext, span));
        }
    }

    private static LocalRoot localRoot(Context parentContext, ReadWriteSpan span) {
        SpanContext parent = span.getParentSpanContext();
        if (parent.isValid() && !parent.isRemote()) {
            KnownSpan known = KnownSpan.of(Span.fromContext(parentContext));
            return known == null ? null : known.root;
        }
        // A call to others that nobody here asked for serves no endpoint.
        boolean serves = span.getKind() != SpanKind.CLIENT && span.getKind() != SpanKind.PRODUCER;
        return serves ? new LocalRoot(span) : null;
    }

    @Override
    public boolean isStartRequired() {
        return profiler.isAvailable();
    }

    @Override
    public void onEnd(ReadableSpan span) {
        KnownSpan known = span instanceof Span ? KnownSpan.of((Span) span) : null;
        if (known == null) {
            return;
        }
        known.end();
        LocalRoot root = known.root;
        String endpoint = root == null || !root.isOf(span) ? null : root.lateEndpoint();
        if (endpoint != null) {
            profiler.recordTraceRoot(known.traceIdHigh, known.traceIdLow, known.spanId, endpoint, root.method());
        }
    }

    @Override
    public boolean isEndRequired() {
        return profiler.isAvailable();
    }
}
