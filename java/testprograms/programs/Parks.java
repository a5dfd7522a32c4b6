package programs;

import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads that park for locks that other threads hold: {@code Parks [virtual]}. Each line is {@code METHOD
 * CLASS LEAST MOST TIMES}. LEAST is the time in nanoseconds for which the threads were certainly parked. MOST
 * is the time that they measured, which may include waiting for a processor.
 */
public final class Parks {
    private static final int ROUNDS = 6;
    private static final long HELD_NS = 50_000_000;

    private Parks() {}

    private static final ReentrantLock LOCK = new ReentrantLock();
    private static final Semaphore PERMITS = new Semaphore(0);
    private static final Object MONITOR = new Object();

    private static long measuredNs;
    private static volatile Thread waiting;

    public static void main(String[] args) throws Exception {
        boolean virtual = args.length > 0;
        for (int round = 0; round < ROUNDS; round++) {
            LOCK.lock();
            waitFor(virtual, Parks::lock, LOCK::unlock);
        }
        report("lock", "java.util.concurrent.locks.ReentrantLock$NonfairSync", ROUNDS * HELD_NS);
        for (int round = 0; round < ROUNDS; round++) {
            waitFor(virtual, Parks::acquire, PERMITS::release);
        }
        report("acquire", "java.util.concurrent.Semaphore$NonfairSync", ROUNDS * HELD_NS);
        // Before JDK 24 a virtual thread that holds a monitor cannot leave its carrier.
        for (int round = 0; round < ROUNDS; round++) {
            waitFor(virtual, Parks::acquireInside, PERMITS::release);
        }
        report("acquireInside", "java.util.concurrent.Semaphore$NonfairSync", ROUNDS * HELD_NS);
        // This call passes no object that the thread waits for.
        Threads.start(virtual, Parks::parkForNothing).join();
    }

    private static void report(String method, String className, long leastNs) {
        System.out.println(method + " " + className + " " + leastNs + " " + measuredNs + " " + ROUNDS);
        measuredNs = 0;
    }

    private static void waitFor(boolean virtual, Runnable task, Runnable end) throws Exception {
        waiting = Threads.start(virtual, task);
        while (LockSupport.getBlocker(waiting) == null || waiting.getState() != Thread.State.WAITING) {
            Thread.onSpinWait();
        }
        long until = System.nanoTime() + HELD_NS;
        while (System.nanoTime() < until) {
            Thread.sleep(1);
        }
        end.run();
        waiting.join();
    }

    private static void lock() {
        long start = System.nanoTime();
        LOCK.lock();
        measuredNs += System.nanoTime() - start;
        LOCK.unlock();
    }

    private static void acquire() {
        long start = System.nanoTime();
        PERMITS.acquireUninterruptibly();
        measuredNs += System.nanoTime() - start;
    }

    private static void acquireInside() {
        synchronized (MONITOR) {
            acquire();
        }
    }

    private static void parkForNothing() {
        LockSupport.parkNanos(HELD_NS);
    }
}
