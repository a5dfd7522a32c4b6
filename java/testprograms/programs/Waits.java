package programs;

/**
 * A thread that waits for a monitor that another thread holds, and one that waits to be notified: {@code
 * Waits [virtual]}. Each line is {@code METHOD CLASS LEAST MOST TIMES}. LEAST is the time in nanoseconds for
 * which the thread certainly waited. MOST is the time that it measured, which may include waiting for a
 * processor.
 */
public final class Waits {
    private static final int ROUNDS = 6;
    private static final long HELD_NS = 50_000_000;
    /**
     * A thread is in the state BLOCKED shortly before the VM reports the beginning of its wait. On a busy
     * machine it may lose its processor in between. This is much longer than it takes to get one again.
     */
    private static final long REPORTED_NS = 20_000_000;

    private Waits() {}

    /** The class of the monitor that is entered. */
    private static final class Door {}

    /** The class of the object on which a thread waits. */
    private static final class Bell {}

    private static final Door DOOR = new Door();
    private static final Bell BELL = new Bell();

    private static long enteredNs;
    private static long notifiedNs;
    private static volatile boolean held;
    private static volatile Thread entering;

    public static void main(String[] args) throws Exception {
        boolean virtual = args.length > 0;
        for (int round = 0; round < ROUNDS; round++) {
            held = false;
            entering = null;
            Thread holder = Threads.start(virtual, Waits::hold);
            while (!held) {
                Thread.sleep(1);
            }
            entering = Threads.start(virtual, Waits::enter);
            holder.join();
            entering.join();
        }
        Threads.start(virtual, Waits::await).join();
        System.out.println("enter programs.Waits$Door " + ROUNDS * HELD_NS + " " + enteredNs + " " + ROUNDS);
        System.out.println("await programs.Waits$Bell " + ROUNDS * HELD_NS + " " + notifiedNs + " " + ROUNDS);
    }

    /** Holds the monitor in a loop, not asleep: a virtual thread that sleeps may leave its carrier. */
    private static void hold() {
        synchronized (DOOR) {
            held = true;
            while (entering == null || entering.getState() != Thread.State.BLOCKED) {
                Thread.onSpinWait();
            }
            long end = System.nanoTime() + REPORTED_NS + HELD_NS;
            while (System.nanoTime() < end) {
                Thread.onSpinWait();
            }
        }
    }

    private static void enter() {
        long start = System.nanoTime();
        synchronized (DOOR) {
            enteredNs += System.nanoTime() - start;
        }
    }

    private static void await() {
        synchronized (BELL) {
            for (int i = 0; i < ROUNDS; i++) {
                long start = System.nanoTime();
                try {
                    BELL.wait(HELD_NS / 1_000_000);
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
                notifiedNs += System.nanoTime() - start;
            }
        }
    }
}
