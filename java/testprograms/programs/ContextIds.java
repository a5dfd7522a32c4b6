package programs;

import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * Sets more values than the dictionary holds: {@code ContextIds COUNT THREADS KEPT}. Each of THREADS threads
 * sets COUNT different values, and an endpoint that does not change. Each of KEPT virtual threads holds a
 * value of its own while the program runs. Prints the number of refused sets, in which a refused endpoint
 * counts as a thousand million.
 */
public final class ContextIds {
    private static final ContextSetter CONTEXT =
            new ContextSetter(Otlpprof.getInstance(), List.of("rest_endpoint", "request", "late"));

    private ContextIds() {}

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[0]);
        Thread[] threads = new Thread[Integer.parseInt(args[1])];
        int kept = Integer.parseInt(args[2]);
        CountDownLatch done = new CountDownLatch(kept);
        for (int i = 0; i < threads.length; i++) {
            CONTEXT.setAttribute(i, "/endpoint" + i);
        }
        for (int i = 0; i < kept; i++) {
            keep(i, done);
        }
        done.await();
        int[] refused = new int[threads.length];
        for (int i = 0; i < threads.length; i++) {
            int number = i;
            threads[i] = new Thread(() -> {
                // Set outside of {@code burn}, every sample of which must have the endpoint.
                boolean isSet = CONTEXT.setAttribute(0, "/endpoint" + number);
                refused[number] = (isSet ? 0 : 1) + burn(number, count);
                // Cleared outside of {@code burn} too.
                CONTEXT.clear();
            }, "setter-" + i);
            threads[i].start();
        }
        int all = 0;
        for (int i = 0; i < threads.length; i++) {
            threads[i].join();
            all += refused[i];
        }
        System.out.println("refused=" + all);
        System.exit(0);
    }

    private static void keep(int number, CountDownLatch done) {
        Runnable task = () -> {
            CONTEXT.setAttribute(1, "kept " + number);
            done.countDown();
            while (true) {
                LockSupport.park();
            }
        };
        Threads.startVirtual(task);
    }

    private static int burn(int thread, int count) {
        int refused = 0;
        for (int i = 0; i < count; i++) {
            if (!CONTEXT.setAttribute(1, thread + "-" + i)) {
                refused++;
            }
            // As a server does, each request sets its endpoint.
            if (!CONTEXT.setAttribute(0, "/endpoint" + thread)) {
                refused += 1_000_000_000;
            }
        }
        return refused;
    }
}
