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
        LocalRoots.areFound = true;
    }

    @Override
    public void onStart(Context parentContext, ReadWriteSpan span) {
        SpanContext parent = span.getParentSpanContext();
        if (!parent.isValid() || parent.isRemote()) {
            // A call to others that nobody here asked for serves no endpoint.
            boolean serves = span.getKind() != SpanKind.CLIENT && span.getKind() != SpanKind.PRODUCER;
            if (serves) {
                LocalRoots.put(span, new LocalRoot(span));
            }
            return;
        }
        LocalRoot root = LocalRoots.of(Span.fromContext(parentContext));
        if (root != null) {
            LocalRoots.put(span, root);
        }
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
