package programs;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Runs another program between a start and a stop of the agent, and prints what CPU time the process used meanwhile, the
 * agent's own threads excluded, which are not sampled: {@code Accounted LIBRARY OPTIONS PROGRAM [ARGUMENT...]}. What the
 * VM's start takes, and the agent's, is on neither side.
 */
public final class Accounted {
    private Accounted() {}

    public static void main(String[] args) throws ReflectiveOperationException {
        String library = args[0];
        String[] rest = Stream.of(args).skip(3).toArray(String[]::new);
        var program = Class.forName("programs." + args[2]).getMethod("main", String[].class);
        // Loads the library.
        usedNanos();
        drive(library, "start," + args[1]);
        long before = usedNanos();
        program.invoke(null, (Object) rest);
        long after = usedNanos();
        drive(library, "stop");
        System.out.println("used_ns=" + (after - before));
    }

    private static void drive(String library, String options) {
        int result = Native.driveAgent(library, options);
        if (result != 0) {
            throw new IllegalStateException(library + " " + options + ": " + result);
        }
    }

    /** The process's CPU time, less that of the agent's threads. */
    private static long usedNanos() {
        try (Stream<Path> tasks = Files.list(Path.of("/proc/self/task"))) {
            long agents = 0;
            for (Path task : tasks.collect(Collectors.toList())) {
                agents += agentsNanos(task);
            }
            return Native.processCpuNanos() - agents;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The CPU time of a thread of the agent's (proc(5): comm; the kernel's sched-stats: schedstat), 0 of another. */
    private static long agentsNanos(Path task) throws IOException {
        try {
            List<String> name = Files.readAllLines(task.resolve("comm"));
            if (!name.get(0).startsWith("otlpprof")) {
                return 0;
            }
            return Long.parseLong(Files.readAllLines(task.resolve("schedstat")).get(0).split(" ")[0]);
        } catch (IOException e) {
            if (Files.exists(task)) {
                throw e;
            }
            // It has ended.
            return 0;
        }
    }
}
