package programs;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.atomic.AtomicLong;

/**
 * More threads that run than there are processors: {@code Crowd SECONDS}. Prints for how many nanoseconds they had one,
 * {@code running NANOSECONDS}, and for how many they waited for one, {@code runnable NANOSECONDS}.
 */
public final class Crowd {
    private static final AtomicLong USED_NS = new AtomicLong();
    private static final AtomicLong PASSED_NS = new AtomicLong();

    private Crowd() {}

    public static void main(String[] args) throws Exception {
        Clock clock = new Clock(args, 3);
        Thread[] threads = new Thread[2 * Runtime.getRuntime().availableProcessors() + 1];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = Threads.start(false, "crowd", () -> run(clock));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("running " + USED_NS.get());
        System.out.println("runnable " + (PASSED_NS.get() - USED_NS.get()));
    }

    private static void run(Clock clock) {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long used = threads.getCurrentThreadCpuTime();
        long start = System.nanoTime();
        while (clock.isRunning()) {
            Thread.onSpinWait();
        }
        USED_NS.addAndGet(threads.getCurrentThreadCpuTime() - used);
        PASSED_NS.addAndGet(System.nanoTime() - start);
    }
}
