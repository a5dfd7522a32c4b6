package programs;

import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * Measures the memory of virtual threads that all exist at once and wait: {@code ContextMemory THREADS WAVES
 * with|without}, with a context for each or without any. For each wave, prints the bytes of the heap in use
 * and the resident bytes outside of the heap. The latter are right only if the whole heap was touched at the
 * start. Needs Java 21, which is reached by reflection.
 */
public final class ContextMemory {
    private static final ContextSetter CONTEXT =
            new ContextSetter(Otlpprof.getInstance(), List.of("rest_endpoint"));

    private ContextMemory() {}

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]);
        int waves = Integer.parseInt(args[1]);
        boolean with = args[2].equals("with");
        for (int wave = 1; wave <= waves; wave++) {
            CountDownLatch there = new CountDownLatch(threads);
            CountDownLatch go = new CountDownLatch(1);
            CountDownLatch done = new CountDownLatch(threads);
            for (int i = 1; i <= threads; i++) {
                int number = i;
                Runnable task = () -> {
                    if (with) {
                        CONTEXT.setTraceContext(1, number, number, 1);
                        CONTEXT.setAttribute(0, "/checkout");
                    }
                    there.countDown();
                    await(go);
                    done.countDown();
                };
                Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, task);
            }
            there.await();
            System.gc();
            System.gc();
            Runtime runtime = Runtime.getRuntime();
            long heap = runtime.totalMemory() - runtime.freeMemory();
            System.out.println("wave " + wave + ": " + heap / 1024 + " KiB of heap, "
                    + (resident() - runtime.totalMemory()) / 1024 + " KiB besides");
            go.countDown();
            done.await();
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static long resident() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("\\D", "")) * 1024;
            }
        }
        throw new IOException("no resident memory in /proc/self/status");
    }
}
