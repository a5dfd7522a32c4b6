package programs;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Runs another program between a start and a stop of the agent, and prints the CPU time that the process used
 * meanwhile: {@code Accounted LIBRARY OPTIONS PROGRAM [ARGUMENT...]}. The CPU time of the agent's own threads
 * is excluded, since they are not sampled. The time that the VM and the agent need to start is neither
 * printed nor sampled.
 */
public final class Accounted {
    private Accounted() {}

    public static void main(String[] args) throws ReflectiveOperationException {
        String library = args[0];
        String[] rest = Stream.of(args).skip(3).toArray(String[]::new);
        var program = Class.forName("programs." + args[2]).getMethod("main", String[].class);
        // The first call loads the library, which must not count.
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

    /** The process's CPU time without that of the agent's threads. */
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

    /**
     * The CPU time of a thread of the agent (proc(5): comm; the kernel's sched-stats: schedstat). 0 for any
     * other thread.
     */
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
            // The thread has ended.
            return 0;
        }
    }
}
