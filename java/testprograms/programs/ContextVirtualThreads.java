package programs;

import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.lang.reflect.Field;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.LockSupport;

/**
 * Many virtual threads, each with a span of its own: {@code ContextVirtualThreads THREADS WAVES TURNS ROUNDS
 * [MODE]}. All of them start before the first continues. Then each takes its turns: it burns, and blocks in
 * one of several ways. Each thread's number is in its stack, as six calls for its octal digits, and shows the
 * expected span. With the mode {@code bare} no thread sets a context, and with {@code one} a single thread
 * does. With {@code carriers} the carriers have contexts of their own in addition. Needs Java 21, and for
 * that mode access to java.lang. Both are reached by reflection, since the programs are compiled for 11.
 */
public final class ContextVirtualThreads {
    private static final ContextSetter CONTEXT =
            new ContextSetter(Otlpprof.getInstance(), List.of("rest_endpoint"));
    private static final Semaphore SEMAPHORE = new Semaphore(1);
    private static final Object[] MONITORS = new Object[16];
    private static final String[] ENDPOINTS = {"/e0", "/e1", "/e2", "/e3"};

    private static int turns;
    private static int rounds;
    private static String mode;

    private ContextVirtualThreads() {}

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]);
        int waves = Integer.parseInt(args[1]);
        turns = Integer.parseInt(args[2]);
        rounds = Integer.parseInt(args[3]);
        mode = args.length > 4 ? args[4] : "all";
        for (int i = 0; i < MONITORS.length; i++) {
            MONITORS[i] = new Object();
        }
        if (mode.equals("carriers")) {
            giveCarriersContexts();
        }
        for (int wave = 0; wave < waves; wave++) {
            long begin = System.nanoTime();
            CountDownLatch there = new CountDownLatch(threads);
            CountDownLatch go = new CountDownLatch(1);
            CountDownLatch done = new CountDownLatch(threads);
            for (int i = 1; i <= threads; i++) {
                int number = i;
                Threads.startVirtual(() -> digits(number, 6, there, go, done));
            }
            there.await();
            long allThere = System.nanoTime();
            go.countDown();
            done.await();
            System.err.println("wave " + wave + ": " + (allThere - begin) / 1_000_000 + " ms to start, "
                    + (System.nanoTime() - allThere) / 1_000_000 + " ms of turns");
        }
    }

    /** Calls setters on the threads that carry virtual threads, as code that instruments their pool does. */
    private static void giveCarriersContexts() throws Exception {
        Field scheduler = Class.forName("java.lang.VirtualThread").getDeclaredField("DEFAULT_SCHEDULER");
        scheduler.setAccessible(true);
        Executor pool = (Executor) scheduler.get(null);
        int tasks = 200;
        CountDownLatch done = new CountDownLatch(tasks);
        for (int i = 0; i < tasks; i++) {
            pool.execute(() -> {
                CONTEXT.setTraceContext(-1, -1, -1, 1);
                CONTEXT.setAttribute(0, "/carrier");
                carrierBurns();
                done.countDown();
            });
        }
        done.await();
    }

    private static void carrierBurns() {
        for (int i = 0; i < 100; i++) {
            Work.sink = burn(i);
        }
    }

    private static void digits(
            int number, int left, CountDownLatch there, CountDownLatch go, CountDownLatch done) {
        if (left == 0) {
            work(number, there, go, done);
            return;
        }
        switch (number >> 3 * (left - 1) & 7) {
            case 0:
                digit0(number, left, there, go, done);
                break;
            case 1:
                digit1(number, left, there, go, done);
                break;
            case 2:
                digit2(number, left, there, go, done);
                break;
            case 3:
                digit3(number, left, there, go, done);
                break;
            case 4:
                digit4(number, left, there, go, done);
                break;
            case 5:
                digit5(number, left, there, go, done);
                break;
            case 6:
                digit6(number, left, there, go, done);
                break;
            default:
                digit7(number, left, there, go, done);
                break;
        }
    }

    private static void digit0(
            int number, int left, CountDownLatch there, CountDownLatch go, CountDownLatch done) {
        digits(number, left - 1, there, go, done);
    }

    private static void digit1(
            int number, int left, CountDownLatch there, CountDownLatch go, CountDownLatch done) {
        digits(number, left - 1, there, go, done);
    }

    private static void digit2(
            int number, int left, CountDownLatch there, CountDownLatch go, CountDownLatch done) {
        digits(number, left - 1, there, go, done);
    }

    private static void digit3(
            int number, int left, CountDownLatch there, CountDownLatch go, CountDownLatch done) {
        digits(number, left - 1, there, go, done);
    }

    private static void digit4(
            int number, int left, CountDownLatch there, CountDownLatch go, CountDownLatch done) {
        digits(number, left - 1, there, go, done);
    }

    private static void digit5(
            int number, int left, CountDownLatch there, CountDownLatch go, CountDownLatch done) {
        digits(number, left - 1, there, go, done);
    }

    private static void digit6(
            int number, int left, CountDownLatch there, CountDownLatch go, CountDownLatch done) {
        digits(number, left - 1, there, go, done);
    }

    private static void digit7(
            int number, int left, CountDownLatch there, CountDownLatch go, CountDownLatch done) {
        digits(number, left - 1, there, go, done);
    }

    private static void work(int number, CountDownLatch there, CountDownLatch go, CountDownLatch done) {
        setContext(number);
        there.countDown();
        takeTurns(number, go);
        done.countDown();
    }

    private static void setContext(int number) {
        if (mode.equals("bare") || mode.equals("one") && number != 1) {
            return;
        }
        CONTEXT.setTraceContext(~number, number, number, 1);
        CONTEXT.setAttribute(0, ENDPOINTS[number & 3]);
    }

    private static void takeTurns(int number, CountDownLatch go) {
        try {
            go.await();
            for (int turn = 0; turn < turns; turn++) {
                Work.sink = burn(number);
                block(number + turn);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void block(int way) throws InterruptedException {
        Object monitor = MONITORS[way >> 2 & 15];
        switch (way & 3) {
            case 0:
                Thread.yield();
                break;
            case 1:
                LockSupport.parkNanos(1_000);
                break;
            case 2:
                SEMAPHORE.acquire();
                SEMAPHORE.release();
                break;
            default:
                synchronized (monitor) {
                    Work.sink++;
                    if ((way & 63) == 63) {
                        // The other threads find the monitor taken. From JDK 24 on they are unmounted then.
                        Thread.yield();
                    } else if ((way & 1023) == 511) {
                        monitor.wait(1);
                    }
                }
                break;
        }
    }

    private static long burn(long x) {
        for (int i = 0; i < rounds; i++) {
            x = Work.mix(x);
        }
        return x;
    }
}
