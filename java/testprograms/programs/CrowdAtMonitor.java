package programs;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Virtual threads that all wait for one monitor: {@code CrowdAtMonitor [THREADS [ROUNDS]]}. They go on after
 * ROUNDS entries each until enough entries have begun on one carrier and ended on another. Prints the sum of
 * their waits in nanoseconds by the program's own clock, the number of entries, and the number of entries
 * that began on one carrier and ended on another.
 */
public final class CrowdAtMonitor {
    /** Much longer than a thread takes to find out that it has to wait. */
    private static final long HELD_NS = 100_000;

    private static final long ENOUGH_SWITCHED = 100;
    /** With fewer processors than carriers, a thread may enter again and again before any other. */
    private static final int MOST_TIMES_ROUNDS = 100;

    private CrowdAtMonitor() {}

    private static final Object MONITOR = new Object();
    private static final AtomicLong WAITED_NS = new AtomicLong();
    private static final AtomicLong ENTRIES = new AtomicLong();
    private static final AtomicLong SWITCHED = new AtomicLong();

    public static void main(String[] args) throws Exception {
        int threads = args.length > 0 ? Integer.parseInt(args[0]) : 1_000;
        int rounds = args.length > 1 ? Integer.parseInt(args[1]) : 5;
        Thread[] crowd = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            crowd[i] = Threads.start(true, "crowd " + i, () -> {
                for (int round = 0; round < rounds || isToGoOn(round, rounds); round++) {
                    enter();
                }
            });
        }
        for (Thread thread : crowd) {
            thread.join();
        }
        System.out.println(WAITED_NS.get() + " " + ENTRIES.get() + " " + SWITCHED.get());
    }

    private static boolean isToGoOn(int round, int rounds) {
        return SWITCHED.get() < ENOUGH_SWITCHED && round < MOST_TIMES_ROUNDS * rounds;
    }

    private static void enter() {
        String before = carrier();
        String inside;
        long since = System.nanoTime();
        synchronized (MONITOR) {
            long entered = System.nanoTime();
            WAITED_NS.addAndGet(entered - since);
            while (System.nanoTime() - entered < HELD_NS) {
                Thread.onSpinWait();
            }
            inside = carrier();
        }
        ENTRIES.incrementAndGet();
        if (!inside.equals(before)) {
            SWITCHED.incrementAndGet();
        }
    }

    /** The end of a virtual thread's text names its carrier. */
    private static String carrier() {
        return Thread.currentThread().toString().replaceFirst("^.*@", "");
    }
}
