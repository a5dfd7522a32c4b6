package programs;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.sdk.trace.SdkTracerProvider;

/** Burns CPU time in a span, in its child, and outside of spans. Prints each span: {@code NAME TRACE_ID SPAN_ID}. */
public final class OpenTelemetrySpans {
    private static volatile long sink;

    private OpenTelemetrySpans() {}

    public static void main(String[] args) throws Exception {
        try (SdkTracerProvider provider = SdkTracerProvider.builder().build()) {
            Tracer tracer = provider.get("test");
            Span outer = tracer.spanBuilder("outer").startSpan();
            Span inner = tracer.spanBuilder("inner").setParent(Context.root().with(outer)).startSpan();
            for (Span span : new Span[] {outer, inner}) {
                String name = span == outer ? "outer" : "inner";
                System.out.println(name + " " + span.getSpanContext().getTraceId() + " " + span.getSpanContext().getSpanId());
            }
            for (int i = 0; i < 20; i++) {
                burnOutside();
                try (Scope first = outer.makeCurrent()) {
                    burnOuter();
                    try (Scope second = inner.makeCurrent()) {
                        burnInner();
                    }
                    burnOuter();
                    Thread hopped = new Thread(Context.current().wrap(OpenTelemetrySpans::burnOuter));
                    Thread bare = new Thread(OpenTelemetrySpans::burnOutside);
                    hopped.start();
                    bare.start();
                    hopped.join();
                    bare.join();
                }
                burnOutside();
            }
        }
    }

    private static void burnOuter() {
        burn();
    }

    private static void burnInner() {
        burn();
    }

    private static void burnOutside() {
        burn();
    }

    private static void burn() {
        long end = System.nanoTime() + 10_000_000;
        while (System.nanoTime() < end) {
            sink = sink * 31 + 7;
        }
    }
}
