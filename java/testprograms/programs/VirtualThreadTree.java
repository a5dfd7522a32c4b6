package programs;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.MutableCallSite;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;

/**
 * Virtual threads whose call tree is known: {@code VirtualThreadTree [SECONDS [MODE [DEPTH]]]}. The threads
 * of each of four pairs have methods of their own at both ends, {@code top0} … {@code top3} and {@code leaf0}
 * … {@code leaf3}. Between them they descend through DEPTH of the methods {@code level0}, {@code level1},
 * {@code level2}, {@code wide}, {@code level0} …, each pair starting with another of them. At the bottom they
 * block and burn, and return by as many levels as in the traversal of a binary tree. Garbage is collected all
 * the time. The modes:
 * <ul>
 *   <li>{@code queues}: as described;
 *   <li>{@code monitors}: they block at monitors;
 *   <li>{@code straight}: they never come back;
 *   <li>{@code deoptimised}: they never come back, and the methods' compiled code becomes invalid again and
 *       again;
 *   <li>{@code throws}: they come back by an exception, to the top;
 *   <li>{@code native}: they burn in native code ({@code -Dddproftest});
 *   <li>{@code upcalls}: they burn and block in Java code that native code has called. That pins their
 *       carriers, so there must be as many carriers as threads.
 * </ul>
 * Needs Java 21, which is reached by reflection, since the programs are compiled for 11.
 */
public final class VirtualThreadTree {
    private static final int PAIRS = 4;
    private static final Object CROWD = new Object();
    private static final Unwound UNWOUND = new Unwound();
    static volatile Object garbage;
    static volatile long result;

    private final String mode;
    private final boolean straight;
    private final boolean noting;
    private final int pair;
    private final int depth;
    private final boolean first;
    private final Meeting meeting;
    private final Runnable upcalled = this::upcalled;

    /** The place where the two threads of a pair take turns. */
    private static final class Meeting {
        final BlockingQueue<Long> forth = new ArrayBlockingQueue<>(1);
        final BlockingQueue<Long> back = new ArrayBlockingQueue<>(1);
        boolean turnOfFirst = true;
    }

    private static final class Unwound extends RuntimeException {
        private static final long serialVersionUID = 1;

        Unwound() {
            super(null, null, false, false);
        }
    }

    /**
     * Compiled code that has {@code NOTE} inlined becomes invalid when the target of {@code SITE} changes.
     */
    private static final class Notes {
        private static final MethodHandle ONE = MethodHandles.constant(long.class, 1L);
        private static final MethodHandle TWO = MethodHandles.constant(long.class, 2L);
        private static final MutableCallSite SITE = new MutableCallSite(MethodType.methodType(long.class));
        private static final MethodHandle NOTE = SITE.dynamicInvoker();

        static void change(boolean one) {
            SITE.setTarget(one ? ONE : TWO);
        }

        static long note() {
            try {
                return (long) NOTE.invokeExact();
            } catch (Throwable throwable) {
                throw new IllegalStateException(throwable);
            }
        }
    }

    private VirtualThreadTree(String mode, int depth, int pair, boolean first, Meeting meeting) {
        this.mode = mode;
        this.noting = mode.equals("deoptimised");
        this.straight = noting || mode.equals("straight");
        this.pair = pair;
        this.depth = depth;
        this.first = first;
        this.meeting = meeting;
    }

    public static void main(String[] args) throws Exception {
        Clock clock = new Clock(args, 5);
        String mode = args.length > 1 ? args[1] : "queues";
        int depth = args.length > 2 ? Integer.parseInt(args[2]) : 20;
        Notes.change(true);
        result = Notes.note();
        warmUp(mode);
        for (int pair = 0; pair < PAIRS; pair++) {
            Meeting meeting = new Meeting();
            Threads.startVirtual(new VirtualThreadTree(mode, depth, pair, true, meeting).task());
            Threads.startVirtual(new VirtualThreadTree(mode, depth, pair, false, meeting).task());
        }
        // The virtual threads are daemons, and block for ever when this thread ends.
        Object[] kept = new Object[64];
        for (int i = 0; clock.isRunning(); i++) {
            for (int j = 0; j < 200; j++) {
                garbage = kept[(i + j) % kept.length] = new byte[8_000];
            }
            if (i % 10 == 0) {
                System.gc();
            }
            if (mode.equals("deoptimised") && i % 5 == 0) {
                Notes.change(i % 2 == 0);
            }
            Thread.sleep(3);
        }
        System.exit(0);
    }

    /** Loads and links classes that the virtual threads will need, in platform threads. */
    private static void warmUp(String mode) throws InterruptedException {
        Meeting meeting = new Meeting();
        Thread[] threads = new Thread[2];
        for (int i = 0; i < threads.length; i++) {
            VirtualThreadTree tree = new VirtualThreadTree(mode, 1, 0, i == 0, meeting);
            threads[i] = new Thread(() -> {
                try {
                    burn(1);
                    if (mode.equals("monitors")) {
                        tree.crowd(1);
                    } else {
                        tree.work(1);
                    }
                } catch (Unwound unwound) {
                    result = 1;
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private Runnable task() {
        switch (pair) {
            case 0: return this::top0;
            case 1: return this::top1;
            case 2: return this::top2;
            default: return this::top3;
        }
    }

    private void top0() {
        while (true) {
            try {
                level0(0, 1);
            } catch (Unwound unwound) {
                result = 0;
            }
        }
    }

    private void top1() {
        while (true) {
            try {
                level1(0, 1);
            } catch (Unwound unwound) {
                result = 1;
            }
        }
    }

    private void top2() {
        while (true) {
            try {
                level2(0, 1, 2);
            } catch (Unwound unwound) {
                result = 2;
            }
        }
    }

    private void top3() {
        while (true) {
            try {
                wide(0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
            } catch (Unwound unwound) {
                result = 3;
            }
        }
    }

    private void level0(int level, long x) {
        for (int i = 0; i < 2; i++) {
            if (noting) {
                x += Notes.note();
            }
            if (level + 1 == depth) {
                bottom(x);
            } else {
                level1(level + 1, x + i);
            }
        }
    }

    private void level1(int level, long x) {
        for (int i = 0; i < 2; i++) {
            if (noting) {
                x += Notes.note();
            }
            if (level + 1 == depth) {
                bottom(x);
            } else {
                level2(level + 1, x, i);
            }
        }
    }

    /** Has more arguments than registers hold. */
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
            if (noting) {
                x += Notes.note();
            }
            if (level + 1 == depth) {
                bottom(x);
            } else {
                level0(level + 1, x + a + b + c + d + e + f + g + h);
            }
        }
    }

    private void bottom(long x) {
        switch (pair) {
            case 0: leaf0(x); break;
            case 1: leaf1(x); break;
            case 2: leaf2(x); break;
            default: leaf3(x); break;
        }
    }

    private void leaf0(long x) {
        do {
            work(x);
        } while (straight);
    }

    private void leaf1(long x) {
        do {
            work(x + 1);
        } while (straight);
    }

    private void leaf2(long x) {
        do {
            work(x + 2);
        } while (straight);
    }

    private void leaf3(long x) {
        do {
            work(x + 3);
        } while (straight);
    }

    private void work(long x) {
        switch (mode) {
            case "monitors":
                takeTurns();
                crowd(x);
                burn(x);
                break;
            case "throws":
                exchange(x);
                throw UNWOUND;
            case "native":
                exchange(x);
                result = Native.spin(20_000);
                break;
            case "upcalls":
                exchange(x);
                Native.upcall(upcalled);
                break;
            default:
                exchange(x);
                burn(x);
                break;
        }
    }

    private void upcalled() {
        burn(depth);
        exchange(depth);
    }

    private void exchange(long x) {
        try {
            if (first) {
                meeting.forth.put(x);
                meeting.back.take();
            } else {
                meeting.forth.take();
                meeting.back.put(x);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private void takeTurns() {
        synchronized (meeting) {
            meeting.turnOfFirst = !first;
            meeting.notify();
            try {
                while (meeting.turnOfFirst != first) {
                    meeting.wait();
                }
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
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
