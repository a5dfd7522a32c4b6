package programs;

import io.otlpprof.Otlpprof;
import java.util.ArrayList;
import java.util.List;

/**
 * Virtual threads that take turns on their carriers. Every second one registers itself to be sampled. Later
 * threads, one after each of them, do not register. Needs Java 21, which is reached by reflection, since the
 * programs are compiled for 11.
 */
public final class RegisteredVirtualThreads {
    private static final Otlpprof PROFILER = Otlpprof.getInstance();
    private static final int THREADS = 8;
    private static final int TURNS = 60;

    private RegisteredVirtualThreads() {}

    public static void main(String[] args) throws Exception {
        run(RegisteredVirtualThreads::chosen, RegisteredVirtualThreads::other);
        run(RegisteredVirtualThreads::later, RegisteredVirtualThreads::later);
        System.out.println("done");
    }

    private static void run(Runnable even, Runnable odd) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            threads.add(Threads.startVirtual(i % 2 == 0 ? even : odd));
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static void chosen() {
        check(PROFILER.addThread());
        registered();
        check(PROFILER.removeThread());
        removed();
        // Most threads end registered, like this one.
        check(PROFILER.addThread());
    }

    private static void registered() {
        takeTurns();
    }

    private static void removed() {
        takeTurns();
    }

    private static void other() {
        takeTurns();
    }

    private static void later() {
        takeTurns();
    }

    private static void takeTurns() {
        for (int turn = 0; turn < TURNS; turn++) {
            long x = turn;
            for (int i = 0; i < 1_000_000; i++) {
                x = Work.mix(x);
            }
            Work.sink = x;
            Thread.yield();
        }
    }

    private static void check(boolean done) {
        if (!done) {
            throw new AssertionError();
        }
    }
}
