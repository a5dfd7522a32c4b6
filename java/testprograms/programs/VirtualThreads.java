package programs;

import java.util.concurrent.SynchronousQueue;

/**
 * Pairs of virtual threads that hand values to each other below a recursion and burn in between: {@code
 * VirtualThreads [SECONDS [PAIRS [DEPTH]]]}. Needs Java 21, which is reached by reflection, since the
 * programs are compiled for 11.
 */
public final class VirtualThreads {
    private VirtualThreads() {}

    public static void main(String[] args) throws Exception {
        Clock clock = new Clock(args, 5);
        int pairs = args.length > 1 ? Integer.parseInt(args[1]) : 4;
        int depth = args.length > 2 ? Integer.parseInt(args[2]) : 20;
        Thread[] threads = new Thread[2 * pairs];
        for (int i = 0; i < pairs; i++) {
            SynchronousQueue<Long> forth = new SynchronousQueue<>();
            SynchronousQueue<Long> back = new SynchronousQueue<>();
            threads[2 * i] = Threads.startVirtual(() -> recurse(depth, clock, back, forth, true));
            threads[2 * i + 1] = Threads.startVirtual(() -> recurse(depth, clock, forth, back, false));
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static void recurse(
            int depth, Clock clock, SynchronousQueue<Long> in, SynchronousQueue<Long> out, boolean first) {
        if (depth > 1) {
            recurse(depth - 1, clock, in, out, first);
            return;
        }
        try {
            exchange(clock, in, out, first);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Passes a value round. A negative value means that the other side has stopped. */
    private static void exchange(
            Clock clock, SynchronousQueue<Long> in, SynchronousQueue<Long> out, boolean first)
            throws InterruptedException {
        if (first) {
            out.put(1L);
        }
        while (true) {
            long x = in.take();
            if (x < 0) {
                return;
            }
            if (first && !clock.isRunning()) {
                out.put(-1L);
                return;
            }
            out.put(burn(x, 20_000) & Long.MAX_VALUE);
        }
    }

    private static long burn(long x, int rounds) {
        for (int i = 0; i < rounds; i++) {
            x = Work.mix(x);
        }
        return x;
    }
}
