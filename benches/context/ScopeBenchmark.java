package context;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextStorage;
import io.opentelemetry.context.Scope;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.otlpprof.Otlpprof;
import io.otlpprof.opentelemetry.LocalRootProcessor;
import io.otlpprof.opentelemetry.ProfiledContextStorage;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * Measures the cost of opening and closing OpenTelemetry's scope of a span, with and without samples that
 * follow it: of a span that has been current before, and of a span that is started for the scope and then
 * ended, as for each request.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class ScopeBenchmark {
    /** Makes a server's span and its child, by OpenTelemetry's SDK. */
    private static Context child(SdkTracerProvider provider) {
        Span server = provider.get("benchmark").spanBuilder("GET").setSpanKind(SpanKind.SERVER).startSpan();
        server.setAttribute("http.request.method", "GET");
        server.setAttribute("http.route", "/orders/{id}");
        Context context = Context.root().with(server);
        return context.with(provider.get("benchmark").spanBuilder("query").setParent(context).startSpan());
    }

    private static Span started(Tracer tracer, Context parent) {
        return tracer.spanBuilder("query").setParent(parent).startSpan();
    }

    /** OpenTelemetry with otlpprof. */
    @State(org.openjdk.jmh.annotations.Scope.Benchmark)
    public static class Followed {
        Tracer tracer;
        Context context;

        @Setup
        public void start() {
            if (!Otlpprof.getInstance(Path.of(System.getProperty("otlpprof.library"))).isAvailable()) {
                throw new IllegalStateException("no agent");
            }
            ContextStorage.addWrapper(ProfiledContextStorage::new);
            SdkTracerProvider provider =
                    SdkTracerProvider.builder().addSpanProcessor(new LocalRootProcessor()).build();
            tracer = provider.get("benchmark");
            context = child(provider);
        }
    }

    /** OpenTelemetry alone. */
    @State(org.openjdk.jmh.annotations.Scope.Benchmark)
    public static class Alone {
        Tracer tracer;
        Context context;

        @Setup
        public void start() {
            SdkTracerProvider provider = SdkTracerProvider.builder().build();
            tracer = provider.get("benchmark");
            context = child(provider);
        }
    }

    @Benchmark
    public void openTelemetryScope_otlpprof(Followed followed) {
        try (Scope scope = followed.context.makeCurrent()) {
            // The span's work.
        }
    }

    @Benchmark
    public void openTelemetryScope_alone(Alone alone) {
        try (Scope scope = alone.context.makeCurrent()) {
            // The span's work.
        }
    }

    @Benchmark
    public void openTelemetrySpan_otlpprof(Followed followed) {
        Span span = started(followed.tracer, followed.context);
        try (Scope scope = span.makeCurrent()) {
            // The span's work.
        }
        span.end();
    }

    @Benchmark
    public void openTelemetrySpan_alone(Alone alone) {
        Span span = started(alone.tracer, alone.context);
        try (Scope scope = span.makeCurrent()) {
            // The span's work.
        }
        span.end();
    }
}
