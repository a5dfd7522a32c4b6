package io.otlpprof.opentelemetry;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.context.Context;
import io.opentelemetry.sdk.trace.ReadWriteSpan;
import io.opentelemetry.sdk.trace.ReadableSpan;
import io.opentelemetry.sdk.trace.SpanProcessor;

/**
 * Finds the local root of each span, whose endpoint is the samples' label. The SDK's autoconfiguration and the Java agent
 * add it by themselves; where an SDK is made by hand, it is
 *
 * <pre>{@code
 * SdkTracerProvider.builder().addSpanProcessor(new LocalRootProcessor())
 * }</pre>
 *
 * <p>Spans that the sampler drops are not shown to processors: their work has a link, and no endpoint.
 */
public final class LocalRootProcessor implements SpanProcessor {
    /** A processor; one is enough. */
    public LocalRootProcessor() {
        KnownSpan.areTold = true;
    }

    @Override
    public void onStart(Context parentContext, ReadWriteSpan span) {
        KnownSpan.add(span, localRoot(parentContext, span));
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
        return true;
    }

    @Override
    public void onEnd(ReadableSpan span) {}

    @Override
    public boolean isEndRequired() {
        return false;
    }
}
