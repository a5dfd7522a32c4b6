package context;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.openjdk.jmh.results.BenchmarkResult;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/**
 * Runs {@link ContextBenchmark}, {@link ScopeBenchmark} and {@link MountBenchmark} in turns, each method once
 * in a turn, and prints the iterations' medians with their quartiles, side by side.
 *
 * <p>Environment: {@code TURNS} (default 5); {@code WARMUP_S} and {@code MEASURE_S}, seconds of each method
 * in a turn (1, 2); {@code ONLY}, a regular expression of methods; {@code PROFILER}, a profiler of JMH, such
 * as {@code perfasm} or {@code gc}.
 */
public final class Turns {
    private static final String OURS = "otlpprof";

    private Turns() {}

    /**
     * Runs the turns.
     *
     * @param args the JVM's options of each fork
     * @throws RunnerException if a method fails
     */
    public static void main(String[] args) throws RunnerException {
        Map<String, Map<String, List<Double>>> figures = new LinkedHashMap<>();
        int turns = number("TURNS", 5);
        for (int turn = 0; turn < turns; turn++) {
            for (RunResult result : new Runner(options(args)).run()) {
                String[] name = result.getParams().getBenchmark().replaceFirst(".*\\.", "").split("_");
                figures.computeIfAbsent(name[0], operation -> new LinkedHashMap<>())
                        .computeIfAbsent(name[1], contender -> new ArrayList<>())
                        .addAll(iterations(result));
            }
        }
        figures.forEach(Turns::print);
    }

    private static Options options(String[] jvmOptions) {
        int warmup = number("WARMUP_S", 1);
        int measure = number("MEASURE_S", 2);
        var options = new OptionsBuilder()
                .include("^context\\.\\w+\\." + System.getenv().getOrDefault("ONLY", ""))
                // There are no virtual threads before 21.
                .exclude(Runtime.version().feature() < 21 ? MountBenchmark.class.getName() : "^$")
                .forks(1)
                .warmupIterations(2)
                .warmupTime(TimeValue.milliseconds(500L * warmup))
                .measurementIterations(10)
                .measurementTime(TimeValue.milliseconds(100L * measure))
                .shouldFailOnError(true)
                .verbosity(VerboseMode.SILENT)
                .jvmArgs(jvmOptions);
        String profiler = System.getenv("PROFILER");
        if (profiler != null) {
            options.addProfiler(profiler).verbosity(VerboseMode.NORMAL);
        }
        return options.build();
    }

    private static List<Double> iterations(RunResult result) {
        List<Double> scores = new ArrayList<>();
        for (BenchmarkResult fork : result.getBenchmarkResults()) {
            for (IterationResult iteration : fork.getIterationResults()) {
                scores.add(iteration.getPrimaryResult().getScore());
            }
        }
        return scores;
    }

    private static int number(String variable, int otherwise) {
        String value = System.getenv(variable);
        return value == null ? otherwise : Integer.parseInt(value);
    }

    private static void print(String operation, Map<String, List<Double>> byContender) {
        List<Double> ours = byContender.get(OURS);
        byContender.forEach((contender, scores) -> {
            System.out.printf(
                    "context: %-22s %-9s %8.2f ns [%.2f %.2f]",
                    operation,
                    contender,
                    quantile(scores, 0.5),
                    quantile(scores, 0.25),
                    quantile(scores, 0.75));
            if (ours != null && scores != ours) {
                double own = quantile(ours, 0.5);
                double other = quantile(scores, 0.5);
                System.out.printf("  %s takes %.2f of it, %+.2f ns", OURS, own / other, own - other);
            }
            System.out.println();
        });
    }

    private static double quantile(List<Double> scores, double share) {
        return scores.stream().sorted().skip((long) (share * (scores.size() - 1))).findFirst().orElseThrow();
    }
}
