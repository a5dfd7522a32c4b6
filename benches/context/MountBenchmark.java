package context;

import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import jdk.jfr.Recording;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * What it costs a virtual thread to leave its carrier and come back, of which there is one: with a context, with one that other
 * processes may read, under an agent that has not been told any, beside somebody else's environment of JVMTI, and alone. From JDK 21 on, whose VM makes
 * transitions dearer as soon as anybody has such an environment (jvmtiExport.cpp,
 * {@code JvmtiExport::get_jvmti_interface}), with events or without.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(jvmArgsAppend = {"-Djdk.virtualThreadScheduler.parallelism=1", "-Djdk.virtualThreadScheduler.maxPoolSize=1"})
public class MountBenchmark {
    private static final int YIELDS = 10_000;

    /** Starts virtual threads, of which the JDK that compiles this may know nothing. */
    @State(Scope.Benchmark)
    public static class Alone {
        private Method start;

        @Setup
        public void find() throws ReflectiveOperationException {
            start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        }

        void run(Runnable first) throws ReflectiveOperationException, InterruptedException {
            Thread thread = (Thread) start.invoke(null, (Runnable) () -> {
                first.run();
                for (int i = 0; i < YIELDS; i++) {
                    Thread.yield();
                }
            });
            thread.join();
        }
    }

    /** The agent is there, and samples. */
    @State(Scope.Benchmark)
    public static class Sampled extends Alone {
        ContextSetter setter;

        @Setup
        public void load() {
            Otlpprof profiler = Otlpprof.getInstance(Path.of(System.getProperty("otlpprof.library")));
            setter = new ContextSetter(profiler, List.of("rest_endpoint"));
            if (!profiler.start("file=/dev/null,loglevel=error" + options())) {
                throw new IllegalStateException("no agent");
            }
        }

        String options() {
            return "";
        }
    }

    /** Other processes may read whose context a carrier has. */
    @State(Scope.Benchmark)
    public static class Published extends Sampled {
        @Override
        String options() {
            return ",context.publish.virtual=true";
        }
    }

    /** Flight Recorder has an environment of JVMTI, and does nothing with it: none of its events is on. */
    @State(Scope.Benchmark)
    public static class Environment extends Alone {
        @Setup
        public void open() {
            new Recording().start();
        }
    }

    @Benchmark
    @OperationsPerInvocation(YIELDS)
    public void yield_context(Sampled sampled) throws Exception {
        sampled.run(() -> sampled.setter.setTraceContext(1, 2, 3, 1));
    }

    @Benchmark
    @OperationsPerInvocation(YIELDS)
    public void yield_published(Published published) throws Exception {
        published.run(() -> published.setter.setTraceContext(1, 2, 3, 1));
    }

    @Benchmark
    @OperationsPerInvocation(YIELDS)
    public void yield_otlpprof(Sampled sampled) throws Exception {
        sampled.run(() -> {});
    }

    @Benchmark
    @OperationsPerInvocation(YIELDS)
    public void yield_jvmti(Environment environment) throws Exception {
        environment.run(() -> {});
    }

    @Benchmark
    @OperationsPerInvocation(YIELDS)
    public void yield_alone(Alone alone) throws Exception {
        alone.run(() -> {});
    }
}
