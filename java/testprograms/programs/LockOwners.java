package programs;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A thread that holds objects that other threads wait for: {@code LockOwners [virtual]}. All others begin to
 * wait while it holds the object: a monitor that is used again and again, monitors of objects that are locked
 * for the first time, and a lock. Each line is {@code CLASS NAME ID TIMES}, with the holder's id and name, or
 * the name of its carrier at that time.
 */
public final class LockOwners {
    private static final int ROUNDS = 10;
    private static final int OTHERS = 4;
    /** Much longer than a busy machine takes to let a waiting thread report its wait. */
    private static final long HELD_MS = 100;

    private LockOwners() {}

    /** The object that is entered in every round. */
    private static final class Door {}

    /** An object that is entered in one round only. */
    private static final class NewDoor {}

    private static final Door DOOR = new Door();
    private static final ReentrantLock LOCK = new ReentrantLock();
    private static final Object[] TARGETS = new Object[3 * ROUNDS];
    private static final AtomicInteger ENTERED = new AtomicInteger();

    private static final Thread[] WAITING = new Thread[OTHERS];
    private static volatile int round = -1;
    private static final Map<String, Integer> HELD = new TreeMap<>();

    public static void main(String[] args) throws Exception {
        boolean virtual = args.length > 0;
        for (int i = 0; i < TARGETS.length; i++) {
            TARGETS[i] = i % 3 == 0 ? DOOR : i % 3 == 1 ? new NewDoor() : LOCK;
        }
        synchronized (DOOR) {
            // Waiting inflates the lock, so that the object has a monitor from now on.
            DOOR.wait(1);
        }
        for (int i = 0; i < OTHERS; i++) {
            WAITING[i] = Threads.start(virtual, "other " + i, LockOwners::enterAll);
        }
        Threads.start(virtual, "holder", LockOwners::holdAll).join();
        for (Thread thread : WAITING) {
            thread.join();
        }
        HELD.forEach((what, rounds) -> System.out.println(what + " " + rounds * OTHERS));
    }

    private static void holdAll() {
        for (int i = 0; i < TARGETS.length; i++) {
            if (TARGETS[i] == LOCK) {
                LOCK.lock();
                hold(i);
                LOCK.unlock();
            } else {
                synchronized (TARGETS[i]) {
                    hold(i);
                }
            }
            while (ENTERED.get() < (i + 1) * OTHERS) {
                Thread.onSpinWait();
            }
        }
    }

    private static void hold(int now) {
        Thread self = Thread.currentThread();
        String name = self.getName().isEmpty() ? self.toString().replaceFirst("^.*@", "") : self.getName();
        String target = TARGETS[now].getClass().getName() + (TARGETS[now] == LOCK ? "$NonfairSync" : "");
        HELD.merge(target + " " + name + " " + self.getId(), 1, Integer::sum);
        round = now;
        try {
            while (!allWait(now)) {
                Thread.sleep(1);
            }
            Thread.sleep(HELD_MS);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static boolean allWait(int now) {
        // A thread in a lock's queue may not have parked yet, and then might never have to.
        Thread.State expected = TARGETS[now] == LOCK ? Thread.State.WAITING : Thread.State.BLOCKED;
        for (Thread thread : WAITING) {
            if (thread.getState() != expected) {
                return false;
            }
        }
        return true;
    }

    private static void enterAll() {
        for (int i = 0; i < TARGETS.length; i++) {
            // The thread does not park. When JDK 21 unparks virtual threads, it may leave one to carriers
            // that all wait for monitors, while another carrier is idle (ForkJoinPool.awaitWork, which does
            // not check the queues again).
            while (round < i) {
                Thread.onSpinWait();
            }
            if (TARGETS[i] == LOCK) {
                LOCK.lock();
                LOCK.unlock();
            } else {
                synchronized (TARGETS[i]) {
                    // Empty: all other threads wait already, so none may begin to wait for this thread.
                }
            }
            ENTERED.incrementAndGet();
        }
    }
}
