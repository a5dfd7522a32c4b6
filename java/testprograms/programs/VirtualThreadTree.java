package programs;

import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;

/**
 * Virtual threads whose call tree is known: {@code VirtualThreadTree [SECONDS [queues|monitors|straight [DEPTH]]]}.
 * Each goes down {@code top}, {@code level0}, {@code level1}, {@code level2}, {@code level0} … to {@code bottom} at
 * DEPTH levels, blocks and burns there, and comes back by as many levels as a binary tree has ({@code straight}:
 * never). Garbage is collected all the time.
 * Needs Java 21; reached by reflection, since the programs are compiled for 11.
 */
public final class VirtualThreadTree {
    private static final int PAIRS = 4;
    private static final Object CROWD = new Object();
    static volatile Object garbage;
    static volatile long result;

    private final boolean monitors;
    private final boolean straight;
    private final int depth;
    private final boolean first;
    private final Meeting meeting;

    /** Where the two of a pair take turns. */
    private static final class Meeting {
        final BlockingQueue<Long> forth = new ArrayBlockingQueue<>(1);
        final BlockingQueue<Long> back = new ArrayBlockingQueue<>(1);
        boolean turnOfFirst = true;
    }

    private VirtualThreadTree(String mode, int depth, boolean first, Meeting meeting) {
        this.monitors = mode.equals("monitors");
        this.straight = mode.equals("straight");
        this.depth = depth;
        this.first = first;
        this.meeting = meeting;
    }

    public static void main(String[] args) throws Exception {
        Clock clock = new Clock(args, 5);
        String mode = args.length > 1 ? args[1] : "queues";
        int depth = args.length > 2 ? Integer.parseInt(args[2]) : 20;
        for (int i = 0; i < PAIRS; i++) {
            Meeting meeting = new Meeting();
            start(new VirtualThreadTree(mode, depth, true, meeting)::top);
            start(new VirtualThreadTree(mode, depth, false, meeting)::top);
        }
        // They are daemons, and block for ever when this one ends.
        Object[] kept = new Object[64];
        for (int i = 0; clock.isRunning(); i++) {
            for (int j = 0; j < 200; j++) {
                garbage = kept[(i + j) % kept.length] = new byte[8_000];
            }
            if (i % 10 == 0) {
                System.gc();
            }
            Thread.sleep(3);
        }
        System.exit(0);
    }

    private static void start(Runnable task) throws ReflectiveOperationException {
        Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, task);
    }

    private void top() {
        while (true) {
            level0(0, 1);
        }
    }

    private void level0(int level, long x) {
        for (int i = 0; i < 2; i++) {
            if (level + 1 == depth) {
                bottom(x);
            } else {
                level1(level + 1, x + i);
            }
        }
    }

    private void level1(int level, long x) {
        for (int i = 0; i < 2; i++) {
            if (level + 1 == depth) {
                bottom(x);
            } else {
                level2(level + 1, x, i);
            }
        }
    }

    /** With more arguments than registers take. */
    private void level2(int level, long x, int y) {
        for (int i = 0; i < 2; i++) {
            if (level + 1 == depth) {
                bottom(x);
            } else {
                wide(level + 1, x, y, i, 1, 2, 3, 4, 5, 6);
            }
        }
    }

    private void wide(int level, long x, int a, int b, int c, int d, int e, int f, int g, int h) {
        for (int i = 0; i < 2; i++) {
            if (level + 1 == depth) {
                bottom(x);
            } else {
                level0(level + 1, x + a + b + c + d + e + f + g + h);
            }
        }
    }

    private void bottom(long x) {
        do {
            try {
                if (monitors) {
                    takeTurns();
                    crowd(x);
                } else {
                    exchange(x);
                }
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            burn(x);
        } while (straight);
    }

    private void exchange(long x) throws InterruptedException {
        if (first) {
            meeting.forth.put(x);
            meeting.back.take();
        } else {
            meeting.forth.take();
            meeting.back.put(x);
        }
    }

    private void takeTurns() throws InterruptedException {
        synchronized (meeting) {
            meeting.turnOfFirst = !first;
            meeting.notify();
            while (meeting.turnOfFirst != first) {
                meeting.wait();
            }
        }
    }

    private void crowd(long x) {
        synchronized (CROWD) {
            burn(x);
        }
    }

    private static void burn(long x) {
        for (int i = 0; i < 2_000; i++) {
            x = Work.mix(x);
        }
        result = x;
    }
}
