package programs;

import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.LockSupport;

/**
 * Many virtual threads, each with a span of its own: {@code ContextVirtualThreads THREADS WAVES TURNS ROUNDS [MODE]}. They
 * all are there before the first goes on; then each takes its turns: it burns, and blocks in one of several ways. Each
 * thread's number is in its stack, as six octal digits of calls: the witness of the span. With the mode {@code bare} no
 * thread sets a context, with {@code one} a single one does. Needs Java 21; reached by reflection, since the programs are
 * compiled for 11.
 */
public final class ContextVirtualThreads {
    private static final ContextSetter CONTEXT = new ContextSetter(Otlpprof.getInstance(), List.of("rest_endpoint"));
    private static final Semaphore SEMAPHORE = new Semaphore(1);
    private static final Object MONITOR = new Object();
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
        for (int wave = 0; wave < waves; wave++) {
            long begin = System.nanoTime();
            CountDownLatch there = new CountDownLatch(threads);
            CountDownLatch go = new CountDownLatch(1);
            CountDownLatch done = new CountDownLatch(threads);
            for (int i = 1; i <= threads; i++) {
                int number = i;
                start(() -> {
                    if (mode.equals("all") || mode.equals("one") && number == 1) {
                        CONTEXT.setTraceContext(~number, number, number, 1);
                        CONTEXT.setAttribute(0, ENDPOINTS[number & 3]);
                    }
                    there.countDown();
                    digits(number, 6, go);
                    done.countDown();
                });
            }
            there.await();
            go.countDown();
            done.await();
            System.err.println("wave " + wave + ": " + (System.nanoTime() - begin) / 1_000_000 + " ms");
        }
    }

    private static void start(Runnable task) throws ReflectiveOperationException {
        Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, task);
    }

    private static void digits(int number, int left, CountDownLatch go) {
        if (left == 0) {
            work(number, go);
            return;
        }
        switch (number >> 3 * (left - 1) & 7) {
            case 0:
                digit0(number, left, go);
                break;
            case 1:
                digit1(number, left, go);
                break;
            case 2:
                digit2(number, left, go);
                break;
            case 3:
                digit3(number, left, go);
                break;
            case 4:
                digit4(number, left, go);
                break;
            case 5:
                digit5(number, left, go);
                break;
            case 6:
                digit6(number, left, go);
                break;
            default:
                digit7(number, left, go);
                break;
        }
    }

    private static void digit0(int number, int left, CountDownLatch go) {
        digits(number, left - 1, go);
    }

    private static void digit1(int number, int left, CountDownLatch go) {
        digits(number, left - 1, go);
    }

    private static void digit2(int number, int left, CountDownLatch go) {
        digits(number, left - 1, go);
    }

    private static void digit3(int number, int left, CountDownLatch go) {
        digits(number, left - 1, go);
    }

    private static void digit4(int number, int left, CountDownLatch go) {
        digits(number, left - 1, go);
    }

    private static void digit5(int number, int left, CountDownLatch go) {
        digits(number, left - 1, go);
    }

    private static void digit6(int number, int left, CountDownLatch go) {
        digits(number, left - 1, go);
    }

    private static void digit7(int number, int left, CountDownLatch go) {
        digits(number, left - 1, go);
    }

    private static void work(int number, CountDownLatch go) {
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
                synchronized (MONITOR) {
                    Work.sink++;
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
