package programs;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Many threads that wait at the same time, again and again: {@code WaitStorm}. They wait for a monitor that
 * another thread holds, they park, and they wait to be notified. Each line is {@code METHOD CLASS NANOSECONDS
 * TIMES}. NANOSECONDS is the waiting time that the threads measured, which is a little more than the true
 * one.
 */
public final class WaitStorm {
    private static final int THREADS = 64;
    private static final int ROUNDS = 400;

    private WaitStorm() {}

    /** The class of the monitor that is entered. */
    private static final class Door {}

    /** The class of the object for which threads park. */
    private static final class Blocker {}

    /** The class of the object on which threads wait. */
    private static final class Bell {}

    private static final Door DOOR = new Door();
    private static final Thread[] WAITING = new Thread[THREADS];
    private static final AtomicLong ENTERING_NS = new AtomicLong();
    private static final AtomicLong PARKED_NS = new AtomicLong();
    private static final AtomicLong WAITED_NS = new AtomicLong();
    private static final AtomicInteger ENTERED = new AtomicInteger();
    private static volatile int round = -1;

    public static void main(String[] args) throws Exception {
        startAll(WaitStorm::enter);
        hold();
        joinAll();
        startAll(WaitStorm::park);
        joinAll();
        startAll(WaitStorm::await);
        joinAll();
        report("enter", Door.class, ENTERING_NS);
        report("park", Blocker.class, PARKED_NS);
        report("await", Bell.class, WAITED_NS);
    }

    private static void startAll(Runnable task) {
        for (int i = 0; i < THREADS; i++) {
            WAITING[i] = Threads.start(false, task);
        }
    }

    private static void joinAll() throws InterruptedException {
        for (Thread thread : WAITING) {
            thread.join();
        }
    }

    private static void report(String method, Class<?> of, AtomicLong ns) {
        System.out.println(method + " " + of.getName() + " " + ns + " " + ROUNDS * THREADS);
    }

    /**
     * In each round all other threads wait for the holder, and none waits for a thread that has just entered.
     */
    private static void hold() {
        for (int i = 0; i < ROUNDS; i++) {
            synchronized (DOOR) {
                round = i;
                for (Thread thread : WAITING) {
                    while (thread.getState() != Thread.State.BLOCKED) {
                        Thread.yield();
                    }
                }
            }
            while (ENTERED.get() < (i + 1) * THREADS) {
                Thread.yield();
            }
        }
    }

    private static void enter() {
        for (int i = 0; i < ROUNDS; i++) {
            while (round < i) {
                Thread.yield();
            }
            long start = System.nanoTime();
            synchronized (DOOR) {
                ENTERING_NS.addAndGet(System.nanoTime() - start);
            }
            ENTERED.incrementAndGet();
        }
    }

    private static void park() {
        Blocker place = new Blocker();
        for (int i = 0; i < ROUNDS; i++) {
            long start = System.nanoTime();
            LockSupport.parkNanos(place, 1_000_000);
            PARKED_NS.addAndGet(System.nanoTime() - start);
        }
    }

    private static void await() {
        Bell bell = new Bell();
        synchronized (bell) {
            for (int i = 0; i < ROUNDS; i++) {
                long start = System.nanoTime();
                try {
                    bell.wait(1);
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
                WAITED_NS.addAndGet(System.nanoTime() - start);
            }
        }
    }
}
