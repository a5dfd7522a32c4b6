package programs;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.sdk.autoconfigure.AutoConfiguredOpenTelemetrySdk;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.otlpprof.opentelemetry.LocalRootProcessor;
import java.lang.reflect.Method;

/**
 * Burns CPU time in several spans and outside of spans: {@code OpenTelemetrySpans AUTOCONFIGURED}. The spans
 * are a server's span, its child, a span on a virtual thread, another server's span of the same trace, a
 * client's span that no request caused, a server's span whose route is found late, and a span that has ended.
 */
public final class OpenTelemetrySpans {
    private static final Method START_VIRTUAL = startVirtual();

    private OpenTelemetrySpans() {}

    /** Returns null before JDK 21. */
    private static Method startVirtual() {
        try {
            return Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException e) {
            return null;
        }
    }

    public static void main(String[] args) throws Exception {
        if (Boolean.parseBoolean(args[0])) {
            burn(AutoConfiguredOpenTelemetrySdk.initialize().getOpenTelemetrySdk().getTracer("test"));
        } else {
            try (SdkTracerProvider provider =
                    SdkTracerProvider.builder().addSpanProcessor(new LocalRootProcessor()).build()) {
                burn(provider.get("test"));
            }
        }
    }

    private static void burn(Tracer tracer) throws Exception {
        routeLate(tracer, "attribute");
        routeLate(tracer, "name");
        Span outer = tracer.spanBuilder("GET").setSpanKind(SpanKind.SERVER).startSpan();
        outer.setAttribute("http.request.method", "GET");
        outer.setAttribute("http.route", "/orders/{id}");
        Span inner = tracer.spanBuilder("inner").setParent(Context.root().with(outer)).startSpan();
        Span second = tracer.spanBuilder("receive")
                .setSpanKind(SpanKind.CONSUMER)
                .setParent(from(inner))
                .startSpan();
        second.updateName("receive order");
        Span client = tracer.spanBuilder("GET").setSpanKind(SpanKind.CLIENT).setNoParent().startSpan();
        Span ended = tracer.spanBuilder("ended").setParent(Context.root().with(outer)).startSpan();
        ended.end();
        for (int i = 0; i < 1000; i++) {
            tracer.spanBuilder("other").setParent(Context.root().with(outer)).startSpan().end();
        }
        // The same span, made current by code that has only the span's ids, and a child that starts there.
        Context wrapped = Context.root().with(Span.wrap(outer.getSpanContext()));
        Span ofWrapped = tracer.spanBuilder("child").setParent(wrapped).startSpan();
        Burning.announce("wrapped", outer, "GET /orders/{id}");
        Burning.announce("child", ofWrapped, "GET /orders/{id}");
        Burning.announce("outer", outer, "GET /orders/{id}");
        Burning.announce("inner", inner, "GET /orders/{id}");
        Burning.announce("second", second, "receive order");
        Burning.announce("client", client, "");
        Burning.announce("ended", ended, "GET /orders/{id}");
        Burning.announce("virtual", outer, "GET /orders/{id}");
        for (int i = 0; i < 10; i++) {
            Burning.outside();
            try (Scope first = outer.makeCurrent()) {
                Burning.outer();
                try (Scope child = inner.makeCurrent()) {
                    Burning.inner();
                    try (Scope other = second.makeCurrent()) {
                        Burning.second();
                    }
                }
                Burning.outer();
                Thread hopped = new Thread(Context.current().wrap(Burning::outer));
                Thread bare = new Thread(Burning::outside);
                hopped.start();
                bare.start();
                hopped.join();
                bare.join();
                if (START_VIRTUAL != null) {
                    Runnable task = Context.current().wrap(Burning::virtual);
                    Thread virtual = (Thread) START_VIRTUAL.invoke(null, task);
                    virtual.join();
                }
            }
            Burning.outside();
            try (Scope scope = client.makeCurrent()) {
                Burning.client();
            }
            try (Scope scope = ended.makeCurrent()) {
                Burning.ended();
            }
            try (Scope scope = wrapped.makeCurrent()) {
                Burning.wrapped();
                try (Scope inWrapped = ofWrapped.makeCurrent()) {
                    Burning.child();
                }
            }
        }
    }

    /** An open scope keeps its endpoint. Scopes that are opened later have the route's endpoint. */
    private static void routeLate(Tracer tracer, String by) {
        Span server = tracer.spanBuilder("GET").setSpanKind(SpanKind.SERVER).setNoParent().startSpan();
        server.setAttribute("http.request.method", "GET");
        Burning.announce("unrouted", server, "GET");
        Burning.announce("routed", server, "GET /late/{id}");
        try (Scope scope = server.makeCurrent()) {
            Burning.unrouted();
            if (by.equals("name")) {
                server.updateName("GET /late/{id}");
            } else {
                server.setAttribute("http.route", "/late/{id}");
            }
            for (int i = 0; i < 5; i++) {
                Burning.unrouted();
            }
            for (int i = 0; i < 5; i++) {
                try (Scope later = Context.current().makeCurrent()) {
                    Burning.routed();
                }
            }
        }
        server.end();
    }

    /** A context as from a span of another process. */
    private static Context from(Span span) {
        SpanContext ids = span.getSpanContext();
        SpanContext remote = SpanContext.createFromRemoteParent(
                ids.getTraceId(), ids.getSpanId(), TraceFlags.getSampled(), TraceState.getDefault());
        return Context.root().with(Span.wrap(remote));
    }
}
