package programs;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Causes as many events of one kind as possible: {@code EventStorm exceptions|nativemem|lock|wait|trace|wall
 * SECONDS [LIBRARY|DEPTH]}. LIBRARY is the path of liballocating, and DEPTH the number of frames through
 * which an exception is thrown. Prints the number of events; for {@code wall}, the nanoseconds for which the
 * thread spins-0 ran.
 */
public final class EventStorm {
    private static final AtomicLong COUNT = new AtomicLong();

    private static volatile Object sink;

    private EventStorm() {}

    private interface Work {
        /** Returns the number of events. */
        long once() throws InterruptedException;
    }

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + (long) (Double.parseDouble(args[1]) * 1e9);
        switch (args[0]) {
            case "exceptions":
                int depth = args.length > 2 ? Integer.parseInt(args[2]) : 0;
                storm(1, end, () -> fail(depth));
                break;
            case "nativemem":
                String library = args[2];
                storm(1, end, () -> {
                    Native.call(library, "allocating_medium", 100);
                    return 100;
                });
                break;
            case "lock":
                storm(8, end, EventStorm::park);
                break;
            case "wait":
                storm(64, end, EventStorm::await);
                break;
            case "trace":
                storm(1, end, EventStorm::traced);
                break;
            case "wall":
                spin(end);
                break;
            default:
                throw new IllegalArgumentException(args[0]);
        }
        System.out.println(COUNT);
    }

    private static void storm(int threads, long end, Work work) throws InterruptedException {
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            all[i] = Threads.start(false, () -> {
                long count = 0;
                try {
                    while (System.nanoTime() < end) {
                        count += work.once();
                    }
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
                COUNT.addAndGet(count);
            });
        }
        for (Thread thread : all) {
            thread.join();
        }
    }

    private static long fail(int depth) {
        try {
            fallThrough(depth);
        } catch (IllegalStateException e) {
            sink = e;
        }
        return 1;
    }

    private static void fallThrough(int depth) {
        if (depth == 0) {
            throw new IllegalStateException("thrown to be counted");
        }
        fallThrough(depth - 1);
    }

    private static long park() {
        LockSupport.parkNanos(COUNT, 1);
        return 1;
    }

    private static long await() throws InterruptedException {
        Object bell = Thread.currentThread();
        synchronized (bell) {
            bell.wait(1);
        }
        return 1;
    }

    private static long traced() {
        sink = new Object();
        return 1;
    }

    private static void spin(long end) throws InterruptedException {
        Thread[] all = new Thread[4];
        for (int i = 0; i < all.length; i++) {
            boolean isFirst = i == 0;
            all[i] = Threads.start(false, "spins-" + i, () -> spinUntil(end, isFirst));
        }
        for (Thread thread : all) {
            thread.join();
        }
    }

    private static void spinUntil(long end, boolean counts) {
        long start = System.nanoTime();
        while (System.nanoTime() < end) {
            Thread.onSpinWait();
        }
        if (counts) {
            COUNT.set(System.nanoTime() - start);
        }
    }
}
