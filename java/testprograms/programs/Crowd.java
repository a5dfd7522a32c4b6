package programs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;

/**
 * More runnable threads than processors: {@code Crowd SECONDS [virtual]}. Virtual threads have as many
 * carriers as there are processors, and never leave them, so threads without a carrier start only after the
 * time is over. Prints the nanoseconds for which threads had a processor, {@code running NANOSECONDS}, and
 * for which they waited for one, {@code runnable NANOSECONDS}.
 */
public final class Crowd {
    private static final AtomicLong USED_NS = new AtomicLong();
    private static final AtomicLong PASSED_NS = new AtomicLong();

    private Crowd() {}

    public static void main(String[] args) throws Exception {
        Clock clock = new Clock(args, 3);
        Thread[] threads = new Thread[2 * Runtime.getRuntime().availableProcessors() + 1];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = Threads.start(args.length > 1, "crowd", () -> run(clock));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("running " + USED_NS.get());
        System.out.println("runnable " + (PASSED_NS.get() - USED_NS.get()));
    }

    private static void run(Clock clock) {
        long used = usedNanos();
        long start = System.nanoTime();
        while (clock.isRunning()) {
            Thread.onSpinWait();
        }
        USED_NS.addAndGet(usedNanos() - used);
        PASSED_NS.addAndGet(System.nanoTime() - start);
    }

    /**
     * The CPU time of the calling thread, or of its carrier, which Java does not report (the kernel's
     * sched-stats: schedstat).
     */
    private static long usedNanos() {
        try {
            return Long.parseLong(Files.readString(Path.of("/proc/thread-self/schedstat")).split(" ")[0]);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }
}
