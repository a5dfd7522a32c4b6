package context;

import com.datadoghq.profiler.JavaProfiler;
import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * Measures the cost of a call of a setter, including the look-up of the thread's block, beside Datadog's
 * java-profiler if that has the same operation. Each method runs in a JVM of its own, so that only one
 * profiler's native library is loaded.
 *
 * <p>A method's name is the operation, an underscore and the library: {@link Turns} prints these side by
 * side.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class ContextBenchmark {
    /** Few enough that the peer's table, which has 65,536 entries, is not full after all invocations. */
    private static final int NEW_VALUES = 5_000;

    private static final String ENDPOINT_NAME = "rest_endpoint";
    private static final List<String> NAMES = List.of("tenant", ENDPOINT_NAME);

    /** The arguments of both libraries; fields, so that the compiler does not know their values. */
    @State(Scope.Thread)
    public static class Values {
        String name = ENDPOINT_NAME;
        String endpoint = "GET /orders/{id}";
        String other = "GET /orders/{id}/items";
        String traceText = "4bf92f3577b34da6a3ce929d0e0e4736";
        String spanText = "00f067aa0ba902b7";
        long traceHigh = 0x4bf92f3577b34da6L;
        long traceLow = 0xa3ce929d0e0e4736L;
        long span = 0x00f067aa0ba902b7L;
        private boolean isOther;

        String next() {
            isOther = !isOther;
            return isOther ? other : endpoint;
        }
    }

    /** Strings that no library has seen before. Their creation is not measured. */
    @State(Scope.Thread)
    public static class NewValues {
        final String[] values = new String[NEW_VALUES];
        private int made;

        @Setup(Level.Invocation)
        public void make() {
            for (int i = 0; i < NEW_VALUES; i++) {
                values[i] = "request " + made++;
            }
        }
    }

    /** The setter of otlpprof. */
    @State(Scope.Benchmark)
    public static class Ours {
        ContextSetter setter;
        int endpoint;

        @Setup
        public void load() {
            Otlpprof profiler = Otlpprof.getInstance(Path.of(System.getProperty("otlpprof.library")));
            if (!profiler.isAvailable()) {
                throw new IllegalStateException("no agent");
            }
            setter = new ContextSetter(profiler, NAMES);
            endpoint = setter.offsetOf(ENDPOINT_NAME);
            if (!setter.setAttribute(endpoint, "probe")) {
                throw new IllegalStateException("no context");
            }
        }
    }

    /** The setter of otlpprof while changes are recorded for the events of the JVM's recorder. */
    @State(Scope.Benchmark)
    public static class Noting {
        ContextSetter setter;
        int endpoint;

        @Setup
        public void start(Ours ours) throws IOException {
            setter = ours.setter;
            endpoint = ours.endpoint;
            Path file = Files.createTempFile("otlpprof", ".pb");
            file.toFile().deleteOnExit();
            Otlpprof.getInstance().start("cpu=off,jfr=jdk.ThreadSleep,file=" + file);
        }

        @TearDown
        public void stop() {
            Otlpprof.getInstance().stop();
        }
    }

    /** The setter of otlpprof in a process without an agent. */
    @State(Scope.Benchmark)
    public static class WithoutAgent {
        ContextSetter setter;

        @Setup
        public void make() {
            Otlpprof profiler = Otlpprof.getInstance();
            if (profiler.isAvailable()) {
                throw new IllegalStateException("an agent");
            }
            setter = new ContextSetter(profiler, NAMES);
        }
    }

    /** The setter of Datadog's java-profiler. */
    @State(Scope.Benchmark)
    public static class Datadogs {
        JavaProfiler profiler;
        com.datadoghq.profiler.ContextSetter setter;
        int endpoint;

        @Setup
        public void load() throws IOException {
            profiler = JavaProfiler.getInstance();
            setter = new com.datadoghq.profiler.ContextSetter(profiler, NAMES);
            endpoint = setter.offsetOf(ENDPOINT_NAME);
            if (!setter.setContextValue(endpoint, "probe") || setter.snapshotTags()[endpoint] == 0) {
                throw new IllegalStateException("no context");
            }
        }
    }

    /** The cost of JMH itself. */
    @Benchmark
    public String nothing_otlpprof(Ours ours, Values values) {
        return values.endpoint;
    }

    @Benchmark
    public boolean setByOffset_otlpprof(Ours ours, Values values) {
        return ours.setter.setAttribute(ours.endpoint, values.endpoint);
    }

    @Benchmark
    public boolean setByOffset_datadog(Datadogs datadogs, Values values) {
        return datadogs.setter.setContextValue(datadogs.endpoint, values.endpoint);
    }

    /** With {@code jfr}, for which each change is recorded with its time. */
    @Benchmark
    public boolean setByOffsetNoted_otlpprof(Noting noting, Values values) {
        return noting.setter.setAttribute(noting.endpoint, values.endpoint);
    }

    @Benchmark
    public boolean setWithoutAgent_otlpprof(WithoutAgent without, Values values) {
        return without.setter.setAttribute(1, values.endpoint);
    }

    @Benchmark
    public Otlpprof askWithoutAgent_otlpprof(WithoutAgent without) {
        return Otlpprof.getInstance();
    }

    /** Sets two values in turn. */
    @Benchmark
    public boolean setTwoInTurn_otlpprof(Ours ours, Values values) {
        return ours.setter.setAttribute(ours.endpoint, values.next());
    }

    @Benchmark
    public boolean setTwoInTurn_datadog(Datadogs datadogs, Values values) {
        return datadogs.setter.setContextValue(datadogs.endpoint, values.next());
    }

    @Benchmark
    public boolean setByName_otlpprof(Ours ours, Values values) {
        return ours.setter.setAttribute(values.name, values.endpoint);
    }

    @Benchmark
    public boolean setByName_datadog(Datadogs datadogs, Values values) {
        return datadogs.setter.setContextValue(values.name, values.endpoint);
    }

    @Benchmark
    public boolean setAndClearByOffset_otlpprof(Ours ours, Values values) {
        boolean set = ours.setter.setAttribute(ours.endpoint, values.endpoint);
        ours.setter.clearAttribute(ours.endpoint);
        return set;
    }

    @Benchmark
    public boolean setAndClearByOffset_datadog(Datadogs datadogs, Values values) {
        boolean set = datadogs.setter.setContextValue(datadogs.endpoint, values.endpoint);
        return datadogs.setter.clearContextValue(datadogs.endpoint) && set;
    }

    /** The operation of a framework whose requests change threads. */
    @Benchmark
    public boolean copyAndRestore_otlpprof(Ours ours) {
        return ours.setter.restore(ours.setter.copy());
    }

    @Benchmark
    @BenchmarkMode(Mode.SingleShotTime)
    @OperationsPerInvocation(NEW_VALUES)
    public int setNewValue_otlpprof(Ours ours, NewValues values) {
        int set = 0;
        for (String value : values.values) {
            set += ours.setter.setAttribute(ours.endpoint, value) ? 1 : 0;
        }
        return set;
    }

    @Benchmark
    @BenchmarkMode(Mode.SingleShotTime)
    @OperationsPerInvocation(NEW_VALUES)
    public int setNewValue_datadog(Datadogs datadogs, NewValues values) {
        int set = 0;
        for (String value : values.values) {
            set += datadogs.setter.setContextValue(datadogs.endpoint, value) ? 1 : 0;
        }
        return set;
    }

    @Benchmark
    public boolean setAndClearTrace_otlpprof(Ours ours, Values values) {
        boolean set = ours.setter.setTraceContext(values.traceHigh, values.traceLow, values.span, 1);
        ours.setter.clearTraceContext();
        return set;
    }

    /** Sets two ids of eight bytes and a checksum: there is room for only half of a trace id. */
    @Benchmark
    public void setAndClearTrace_datadog(Datadogs datadogs, Values values) {
        datadogs.profiler.setContext(values.span, values.traceLow);
        datadogs.profiler.clearContext();
    }

    @Benchmark
    public boolean setAndClearTraceText_otlpprof(Ours ours, Values values) {
        boolean set = ours.setter.setTraceContext(values.traceText, values.spanText, 1);
        ours.setter.clearTraceContext();
        return set;
    }
}
