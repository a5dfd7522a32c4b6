package programs;

import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads that each serve one endpoint, with work for every engine: {@code EngineContexts SECONDS LIBRARY
 * [virtual] [registered]}. LIBRARY is the path of liballocating. A thread does all its work below the method
 * of its endpoint, and its label has the method's name. endpoint1 is served by the thread serves-1, in the
 * trace and span whose bytes are all 2. With {@code virtual} the threads are virtual ones, which have no
 * names. With {@code registered} serves-1 registers itself to be sampled.
 */
public final class EngineContexts {
    private static final ContextSetter CONTEXT =
            new ContextSetter(Otlpprof.getInstance(), List.of("rest_endpoint", "traceid", "spanid"));
    private static final int ENDPOINT = CONTEXT.offsetOf("rest_endpoint");
    private static final String[] ENDPOINTS = {"endpoint0", "endpoint1", "endpoint2"};

    private static final Object MONITOR = new Object();
    private static final Object BELL = new Object();
    private static final ReentrantLock LOCK = new ReentrantLock();
    private static final int KEPT = 512;
    private static final byte[][][] KEPT_BY_ENDPOINT = new byte[ENDPOINTS.length][KEPT][];

    private static String library;
    private static volatile Object sink;

    private EngineContexts() {}

    public static void main(String[] args) throws Exception {
        library = args[1];
        List<String> words = List.of(args);
        boolean isVirtual = words.contains("virtual");
        int registered = words.contains("registered") ? 1 : -1;
        // Waits until the library's calls are redirected to the agent, for at most 10 seconds.
        for (int i = 0; i < 1_000 && call("is_redirected", 0) == 0; i++) {
            Thread.sleep(10);
        }
        Clock clock = new Clock(args, 2);
        Thread[] threads = new Thread[ENDPOINTS.length];
        for (int i = 0; i < threads.length; i++) {
            int number = i;
            threads[i] = Threads.start(isVirtual, "serves-" + i, () -> {
                if (number == registered && !Otlpprof.getInstance().addThread()) {
                    throw new AssertionError("not registered");
                }
                serve(number, clock);
            });
        }
        while (clock.isRunning()) {
            Thread.sleep(250);
            // An object counts as live once it has survived a collection.
            System.gc();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("done");
    }

    private static void serve(int endpoint, Clock clock) {
        long ids = 0x0101010101010101L * (endpoint + 1);
        try {
            for (int round = 0; clock.isRunning(); round++) {
                CONTEXT.setTraceContext(ids, ids, ids, 1);
                CONTEXT.setAttribute(ENDPOINT, ENDPOINTS[endpoint]);
                serveOnce(endpoint, round);
                CONTEXT.clear();
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void serveOnce(int endpoint, int round) throws InterruptedException {
        switch (endpoint) {
            case 0:
                endpoint0(round);
                break;
            case 1:
                endpoint1(round);
                break;
            default:
                endpoint2(round);
                break;
        }
    }

    private static void endpoint0(int round) throws InterruptedException {
        work(0, round);
    }

    private static void endpoint1(int round) throws InterruptedException {
        work(1, round);
    }

    private static void endpoint2(int round) throws InterruptedException {
        work(2, round);
    }

    private static void work(int endpoint, int round) throws InterruptedException {
        allocates();
        keeps(endpoint, round);
        fails();
        burns();
        contends();
        parks();
        awaits();
        sleeps();
        traced();
        mallocs();
        faults();
    }

    private static void allocates() {
        for (int i = 0; i < 200; i++) {
            sink = new byte[1_024];
        }
    }

    private static void keeps(int endpoint, int round) {
        for (int i = 0; i < 8; i++) {
            KEPT_BY_ENDPOINT[endpoint][(round * 8 + i) % KEPT] = new byte[4_096];
        }
    }

    private static void fails() {
        for (int i = 0; i < 5; i++) {
            try {
                throw new IllegalArgumentException("thrown to be counted");
            } catch (IllegalArgumentException e) {
                sink = e;
            }
        }
    }

    private static void burns() {
        long x = 1;
        for (int i = 0; i < 400_000; i++) {
            x = Work.mix(x);
        }
        Work.sink = x;
    }

    private static void contends() throws InterruptedException {
        synchronized (MONITOR) {
            Thread.sleep(1);
        }
    }

    private static void parks() throws InterruptedException {
        LOCK.lock();
        try {
            Thread.sleep(1);
        } finally {
            LOCK.unlock();
        }
    }

    private static void awaits() throws InterruptedException {
        synchronized (BELL) {
            BELL.wait(1);
        }
    }

    private static void sleeps() throws InterruptedException {
        Thread.sleep(2);
    }

    private static void traced() throws InterruptedException {
        Thread.sleep(1);
    }

    private static void mallocs() {
        call("medium", 50);
        call("leaked", 50);
    }

    /** Newly mapped memory has no pages yet. */
    private static void faults() {
        sink = ByteBuffer.allocateDirect(256 << 10);
    }

    private static long call(String function, long count) {
        return Native.call(library, "allocating_" + function, count);
    }
}
