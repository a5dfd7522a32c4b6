package programs;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.context.Scope;
import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.util.List;

/**
 * Burns CPU time in a span from another process, with OpenTelemetry's API, without an SDK, and with its own
 * endpoint.
 */
public final class OpenTelemetryApi {
    private OpenTelemetryApi() {}

    public static void main(String[] args) {
        Span span = Span.wrap(SpanContext.create(
                "0af7651916cd43dd8448eb211c80319c",
                "b7ad6b7169203331",
                TraceFlags.getSampled(),
                TraceState.getDefault()));
        ContextSetter setter = new ContextSetter(Otlpprof.getInstance(), List.of("rest_endpoint"));
        Burning.announce("outer", span, "/own");
        for (int i = 0; i < 10; i++) {
            Burning.outside();
            setter.setAttribute("rest_endpoint", "/own");
            try (Scope scope = span.makeCurrent()) {
                Burning.outer();
            }
            setter.clearAttribute("rest_endpoint");
        }
    }
}
