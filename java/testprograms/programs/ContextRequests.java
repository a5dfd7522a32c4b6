package programs;

import io.otlpprof.ContextScope;
import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.LongAdder;

/**
 * A service that counts its own CPU time: {@code ContextRequests [SECONDS]}. 200 threads serve 10,000
 * requests a second to four endpoints. If the machine cannot keep up, they serve as many in a longer time.
 * Each request has a span of its own and runs in its endpoint's method. Prints a line for each endpoint:
 * {@code NAME REQUESTS CPU_NS}.
 */
public final class ContextRequests {
    private static final int THREADS = 200;
    private static final int REQUESTS_EACH_MS = 10;

    /** The endpoint of each of ten successive requests. */
    private static final int[] ENDPOINTS = {0, 0, 0, 0, 1, 1, 1, 2, 2, 3};

    private static final String[] NAMES = {"GET /items", "GET /cart", "POST /cart", "POST /orders"};

    /**
     * Work for each request, such that the endpoints take about 32, 36, 16 and 16 % of the time. Equal
     * shares, or shares equal to those of the requests, would also result from labels that were mixed up. A
     * thread that wakes up, takes a request and begins to serve it has some microseconds attributed a little
     * later than they were spent, so no request is much shorter than the others.
     */
    private static final int[] ROUNDS = {75_000, 112_500, 75_000, 150_000};

    private static final int STOP = -1;

    private static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();
    private static final ContextSetter CONTEXT =
            new ContextSetter(Otlpprof.getInstance(), List.of("rest_endpoint"));
    private static final LongAdder[] CPU_NS = new LongAdder[NAMES.length];
    private static final LongAdder[] SERVED = new LongAdder[NAMES.length];
    private static volatile long sink;

    private ContextRequests() {}

    public static void main(String[] args) throws Exception {
        double seconds = args.length > 0 ? Double.parseDouble(args[0]) : 10;
        long all = (long) (seconds * 1_000) * REQUESTS_EACH_MS;
        for (int i = 0; i < NAMES.length; i++) {
            CPU_NS[i] = new LongAdder();
            SERVED[i] = new LongAdder();
        }
        BlockingQueue<Integer> requests = new ArrayBlockingQueue<>(1_000);
        Thread[] workers = new Thread[THREADS];
        for (int i = 0; i < THREADS; i++) {
            workers[i] = new Thread(() -> work(requests), "worker-" + i);
            workers[i].start();
        }
        long started = System.nanoTime();
        long sent = 0;
        while (sent < all) {
            long due = Math.min(all, (System.nanoTime() - started) / 1_000_000 * REQUESTS_EACH_MS);
            // If the machine cannot keep up, the queue is full, and requests arrive as fast as they are
            // served.
            for (; sent < due; sent++) {
                requests.put(ENDPOINTS[(int) (sent % ENDPOINTS.length)]);
            }
            Thread.sleep(1);
        }
        for (int i = 0; i < THREADS; i++) {
            requests.put(STOP);
        }
        for (Thread worker : workers) {
            worker.join();
        }
        for (int i = 0; i < NAMES.length; i++) {
            System.out.println(NAMES[i].replace(' ', '_') + " " + SERVED[i].sum() + " " + CPU_NS[i].sum());
        }
    }

    private static void work(BlockingQueue<Integer> requests) {
        try {
            for (int endpoint = requests.take(); endpoint != STOP; endpoint = requests.take()) {
                serve(endpoint);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @SuppressWarnings("try") // The scope is there to be closed.
    private static void serve(int endpoint) {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        try (ContextScope scope = CONTEXT.openScope()) {
            CONTEXT.setTraceContext(random.nextLong() | 1, random.nextLong(), random.nextLong() | 1, 1);
            CONTEXT.setAttribute(0, NAMES[endpoint]);
            switch (endpoint) {
                case 0:
                    getItems();
                    break;
                case 1:
                    getCart();
                    break;
                case 2:
                    postCart();
                    break;
                default:
                    postOrders();
            }
        }
        SERVED[endpoint].increment();
    }

    private static void getItems() {
        burn(0);
    }

    private static void getCart() {
        burn(1);
    }

    private static void postCart() {
        burn(2);
    }

    private static void postOrders() {
        burn(3);
    }

    private static void burn(int endpoint) {
        long first = CLOCK.getCurrentThreadCpuTime();
        long before = CLOCK.getCurrentThreadCpuTime();
        long value = sink;
        for (int i = 0; i < ROUNDS[endpoint]; i++) {
            value = value * 31 + i;
        }
        sink = value;
        long after = CLOCK.getCurrentThreadCpuTime();
        // Part of the first call and part of the last one belong to the request. Together they take as long
        // as one call.
        CPU_NS[endpoint].add(after - first + (before - first));
    }
}
