package programs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * More runnable threads than processors: {@code Crowd SECONDS [virtual]}. Virtual threads have as many
 * carriers as there are processors, and never leave them, so threads without a carrier start only after the
 * time is over. Prints the nanoseconds for which threads had a processor, {@code running LEAST MOST}, and for
 * which they waited for one, {@code runnable LEAST MOST}: in the program's own loop, and in the threads'
 * whole lives. With virtual threads both are those of the loop, since a carrier has a life of its own.
 */
public final class Crowd {
    /** The times of running and of waiting for a processor, in the loop and in whole lives. */
    private static final AtomicLongArray LEAST = new AtomicLongArray(2);
    private static final AtomicLongArray MOST = new AtomicLongArray(2);

    private Crowd() {}

    public static void main(String[] args) throws Exception {
        boolean virtual = args.length > 1;
        // A virtual thread that waits for another one to initialise a class may go on with another carrier.
        times(schedulingOfThisThread());
        Clock clock = new Clock(args, 3);
        Thread[] threads = new Thread[2 * Runtime.getRuntime().availableProcessors() + 1];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = Threads.start(virtual, "crowd", () -> run(clock, virtual));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("running " + LEAST.get(0) + " " + MOST.get(0));
        System.out.println("runnable " + LEAST.get(1) + " " + MOST.get(1));
    }

    private static void run(Clock clock, boolean virtual) {
        Path scheduling = schedulingOfThisThread();
        long[] before = times(scheduling);
        while (clock.isRunning()) {
            Thread.onSpinWait();
        }
        long[] after = times(scheduling);
        for (int i = 0; i < after.length; i++) {
            LEAST.addAndGet(i, after[i] - before[i]);
            MOST.addAndGet(i, virtual ? after[i] - before[i] : after[i]);
        }
    }

    /** The kernel's scheduling statistics of the calling thread, or of its carrier. */
    private static Path schedulingOfThisThread() {
        try {
            return Path.of("/proc/thread-self").toRealPath().resolve("schedstat");
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    /**
     * The time for which a thread has had a processor, and the time for which it has waited for one. Java
     * does not report them of a carrier (the kernel's sched-stats: schedstat).
     */
    private static long[] times(Path scheduling) {
        try {
            String[] numbers = Files.readString(scheduling).split(" ");
            return new long[] {Long.parseLong(numbers[0]), Long.parseLong(numbers[1])};
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }
}
