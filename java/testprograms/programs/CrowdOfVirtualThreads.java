package programs;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * Tens of thousands of virtual threads, each of which sleeps, parks, yields and burns in turn, below a
 * recursion: {@code CrowdOfVirtualThreads [SECONDS [THREADS [DEPTH [TURNS]]]]}. All are started at once, and
 * end after TURNS turns or when the time is over. Then as many are started again. Needs Java 21, which is
 * reached by reflection, since the programs are compiled for 11.
 */
public final class CrowdOfVirtualThreads {
    private CrowdOfVirtualThreads() {}

    public static void main(String[] args) throws Exception {
        Clock clock = new Clock(args, 5);
        int threads = args.length > 1 ? Integer.parseInt(args[1]) : 50_000;
        int depth = args.length > 2 ? Integer.parseInt(args[2]) : 10;
        int turns = args.length > 3 ? Integer.parseInt(args[3]) : Integer.MAX_VALUE;
        while (clock.isRunning()) {
            CountDownLatch ended = new CountDownLatch(threads);
            for (int i = 0; i < threads; i++) {
                int number = i;
                Threads.startVirtual(() -> {
                    recurse(depth, clock, number, turns);
                    ended.countDown();
                });
            }
            ended.await();
        }
    }

    private static void recurse(int depth, Clock clock, int number, int turns) {
        if (depth > 1) {
            recurse(depth - 1, clock, number, turns);
            return;
        }
        for (int turn = number; clock.isRunning() && turn - number < turns; turn++) {
            burn(turn);
            if (turn % 3 == 0) {
                pause();
            } else if (turn % 3 == 1) {
                Thread.yield();
            } else {
                LockSupport.parkNanos(100_000);
            }
        }
    }

    private static void pause() {
        try {
            Thread.sleep(1);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void burn(long seed) {
        long x = seed;
        for (int i = 0; i < 2_000; i++) {
            x = Work.mix(x);
        }
        Work.sink = x;
    }
}
