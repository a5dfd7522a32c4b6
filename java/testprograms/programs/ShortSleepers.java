package programs;

import java.util.concurrent.atomic.LongAdder;

/**
 * Threads that sleep for some milliseconds and end, four at a time: {@code ShortSleepers SECONDS SLEEP_MS}.
 * Prints the nanoseconds that all of them together have slept, by their own clock.
 */
public final class ShortSleepers {
    private static final LongAdder SLEPT_NS = new LongAdder();

    private ShortSleepers() {}

    public static void main(String[] args) throws InterruptedException {
        long end = System.nanoTime() + (long) (Double.parseDouble(args[0]) * 1e9);
        long sleepMs = Long.parseLong(args[1]);
        Thread[] spawners = new Thread[4];
        for (int i = 0; i < spawners.length; i++) {
            spawners[i] = new Thread(() -> {
                while (System.nanoTime() < end) {
                    Thread sleeper = new Thread(() -> sleep(sleepMs), "short-sleeper");
                    sleeper.start();
                    join(sleeper);
                }
            });
            spawners[i].start();
        }
        for (Thread spawner : spawners) {
            spawner.join();
        }
        System.out.println(SLEPT_NS.sum());
    }

    private static void sleep(long ms) {
        long start = System.nanoTime();
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        SLEPT_NS.add(System.nanoTime() - start);
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
