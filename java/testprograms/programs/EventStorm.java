package programs;

import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * Causes as many events of one engine as possible: {@code EventStorm
 * exceptions|nativemem|lock|wait|trace|alloc|live SECONDS [LIBRARY|DEPTH]}. LIBRARY is the path of
 * liballocating, and DEPTH the number of frames through which an exception is thrown. Prints the number of
 * events.
 */
public final class EventStorm {
    private static final Object BLOCKER = new Object();
    private static final int OBJECTS = 100;

    private static volatile Object sink;

    private EventStorm() {}

    /** Work that is repeated. */
    interface Work {
        /** Returns the number of events. */
        long once() throws InterruptedException;
    }

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + (long) (Double.parseDouble(args[1]) * 1e9);
        Work work = work(args[0], args.length > 2 ? args[2] : "");
        LongAdder count = new LongAdder();
        Thread[] all = new Thread[threads(args[0])];
        for (int i = 0; i < all.length; i++) {
            all[i] = Threads.start(false, () -> repeat(work, () -> System.nanoTime() < end, count));
        }
        for (Thread thread : all) {
            thread.join();
        }
        System.out.println(count);
    }

    /** The number of threads that do the work of an engine. */
    static int threads(String engine) {
        switch (engine) {
            case "cpu":
                return 2;
            case "wall":
                return 4;
            case "lock":
                return 8;
            case "wait":
                return 64;
            default:
                return 1;
        }
    }

    /** The work that causes an engine's events. The engines {@code cpu} and {@code wall} need no events. */
    static Work work(String engine, String argument) {
        switch (engine) {
            case "exceptions":
                int depth = argument.isEmpty() ? 0 : Integer.parseInt(argument);
                return () -> fail(depth);
            case "nativemem":
                return () -> {
                    Native.call(argument, "allocating_medium", OBJECTS);
                    return OBJECTS;
                };
            case "lock":
                return EventStorm::park;
            case "wait":
                return EventStorm::await;
            case "trace":
                return EventStorm::traced;
            case "alloc":
            case "live":
                return EventStorm::allocate;
            case "cpu":
            case "wall":
                return EventStorm::spin;
            default:
                throw new IllegalArgumentException(engine);
        }
    }

    /** Repeats the work, and adds the number of its events to {@code count} each time. */
    static void repeat(Work work, BooleanSupplier goesOn, LongAdder count) {
        try {
            while (goesOn.getAsBoolean()) {
                count.add(work.once());
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
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
        LockSupport.parkNanos(BLOCKER, 1);
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

    private static long allocate() {
        for (int i = 0; i < OBJECTS; i++) {
            sink = new byte[1024];
        }
        return OBJECTS;
    }

    private static long spin() {
        for (int i = 0; i < 1_000; i++) {
            Thread.onSpinWait();
        }
        return 0;
    }
}
