package programs;

import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * More values than the dictionary holds: {@code ContextIds COUNT THREADS KEPT}. Each of the threads sets so many different
 * values, beside an endpoint that stays; KEPT virtual threads hold each a value of its own, as long as the program runs.
 * Says how many sets were refused; a refused endpoint counts a thousand millions.
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
                // Not in the method of which each sample is to have it.
                boolean isSet = CONTEXT.setAttribute(0, "/endpoint" + number);
                refused[number] = (isSet ? 0 : 1) + burn(number, count);
                // Not in the method either.
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
            // As a server does: each request says where it arrived.
            if (!CONTEXT.setAttribute(0, "/endpoint" + thread)) {
                refused += 1_000_000_000;
            }
        }
        return refused;
    }
}
