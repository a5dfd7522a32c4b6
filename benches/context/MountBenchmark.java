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
 * Measures the cost for a virtual thread to leave its carrier, the only one, and to return: with a context,
 * with a context that other processes may read, under an agent without any context, with a JVMTI environment
 * of other code, and alone. From JDK 21 on, whose VM makes transitions more expensive as soon as there is a
 * JVMTI environment (jvmtiExport.cpp, {@code JvmtiExport::get_jvmti_interface}), with or without events.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(
        jvmArgsAppend = {
            "-Djdk.virtualThreadScheduler.parallelism=1",
            "-Djdk.virtualThreadScheduler.maxPoolSize=1"
        })
public class MountBenchmark {
    private static final int YIELDS = 10_000;

    /** Starts virtual threads, which the JDK that compiles this class may not support. */
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

    /** The agent is loaded, and samples. */
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

    /** Other processes may read the context of the virtual thread on a carrier. */
    @State(Scope.Benchmark)
    public static class Published extends Sampled {
        @Override
        String options() {
            return ",context.publish.virtual=true";
        }
    }

    /** Flight Recorder has a JVMTI environment without any enabled event. */
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
