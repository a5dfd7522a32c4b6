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
 * Finds the local root of each span, whose endpoint becomes a label of samples. The SDK's autoconfiguration
 * and the Java agent add this processor by themselves. An SDK that is built by hand needs
 *
 * <pre>{@code
 * SdkTracerProvider.builder().addSpanProcessor(new LocalRootProcessor())
 * }</pre>
 *
 * <p>A server may find out which endpoint it serves after the work on the request has begun; a label that has
 * been set stays. When such a span ends, {@link Otlpprof#recordTraceRoot} records its final endpoint.
 *
 * <p>Spans that the sampler drops are not passed to processors: samples of their work have a link, and no
 * endpoint. Without the agent this processor requests no spans. An instance that was created before the agent
 * was loaded stays inactive.
 */
public final class LocalRootProcessor implements SpanProcessor {
    private final Otlpprof profiler;

    /** Creates a processor. One is enough. */
    public LocalRootProcessor() {
        profiler = Otlpprof.getInstance();
        KnownSpan.hasProcessor |= profiler.isAvailable();
    }

    @Override
    public void onStart(Context parentContext, ReadWriteSpan span) {
        // Composite processors ask once whether this one wants to be called; the SDK calls a single processor
        // in any case.
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
        // A call to another service that no request to this process caused serves no endpoint.
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
            profiler.recordTraceRoot(
                    known.traceIdHigh, known.traceIdLow, known.spanId, endpoint, root.method());
        }
    }

    @Override
    public boolean isEndRequired() {
        return profiler.isAvailable();
    }
}
