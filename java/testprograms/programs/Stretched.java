package programs;

import io.otlpprof.Otlpprof;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;

/**
 * Work that costs the profiler more than its budget: {@code Stretched ENGINE SECONDS [LIBRARY]}, with the
 * engines and the library of {@link EventStorm}, and with the engines {@code cpu} and {@code wall}. First
 * there is as much of the work as it takes until the profiler samples the engine less often. Then threads
 * with the name {@code measured} do the work for SECONDS; with {@code cpu} for as many seconds of CPU time
 * each. Prints {@code LEAST MOST DROPPED}: the bounds of the number of their events, of their CPU time or of
 * their elapsed time, both in nanoseconds, and the number of the engine's samples that were dropped
 * meanwhile.
 */
public final class Stretched {
    private static final Otlpprof PROFILER = Otlpprof.getInstance();
    /** Much longer than the profiler takes to compare its cost with its budget, on any machine. */
    private static final long PATIENCE_NS = 60_000_000_000L;
    /** An engine with fewer samples may not have begun yet. */
    private static final long LEAST_TAKEN = 100;

    /** Released when all is measured. */
    private static final CountDownLatch OVER = new CountDownLatch(1);

    private static volatile boolean isStretched;

    private Stretched() {}

    /**
     * Threads that do the same work. They exist until all is measured: the CPU time that an ended thread has
     * not been credited with is credited to other threads.
     */
    private static final class Crew {
        private final LongAdder count = new LongAdder();
        private final CountDownLatch begun;
        private final CountDownLatch idle;
        private final Thread[] threads;

        Crew(String engine, String library, String name, BooleanSupplier goesOn) {
            EventStorm.Work work = EventStorm.work(engine, library);
            threads = new Thread[EventStorm.threads(engine)];
            begun = new CountDownLatch(threads.length);
            idle = new CountDownLatch(threads.length);
            for (int i = 0; i < threads.length; i++) {
                threads[i] = new Thread(() -> run(work, goesOn), name);
                threads[i].setDaemon(true);
                threads[i].start();
            }
        }

        private void run(EventStorm.Work work, BooleanSupplier goesOn) {
            begun.countDown();
            EventStorm.repeat(work, goesOn, count);
            idle.countDown();
            try {
                OVER.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }

        long cpuNanos() {
            ThreadMXBean clocks = ManagementFactory.getThreadMXBean();
            long sum = 0;
            for (Thread thread : threads) {
                sum += clocks.getThreadCpuTime(thread.getId());
            }
            return sum;
        }
    }

    public static void main(String[] args) throws Exception {
        String engine = args[0];
        long nanos = (long) (Double.parseDouble(args[1]) * 1e9);
        String library = args.length > 2 ? args[2] : "";
        Crew first = new Crew(engine, library, "first", () -> !isStretched);
        waitUntilStretched(engine, first.count::sum);
        isStretched = true;
        first.idle.await();
        long dropped = counter(engine + ".samples_dropped");
        boolean isCpu = engine.equals("cpu");
        LongSupplier clock = isCpu ? Native::processCpuNanos : System::nanoTime;
        long end = clock.getAsLong() + (isCpu ? nanos * EventStorm.threads(engine) : nanos);
        long created = System.nanoTime();
        Crew measured = new Crew(engine, library, "measured", () -> clock.getAsLong() < end);
        measured.begun.await();
        long begun = System.nanoTime();
        measured.idle.await();
        long idle = System.nanoTime();
        dropped = counter(engine + ".samples_dropped") - dropped;
        PROFILER.stop();
        long stopped = System.nanoTime();
        long least = measured.count.sum();
        long most = least;
        if (isCpu) {
            least = measured.cpuNanos();
            most = least;
        } else if (engine.equals("wall")) {
            least = (idle - begun) * measured.threads.length;
            most = (stopped - created) * measured.threads.length;
        }
        OVER.countDown();
        System.out.println(least + " " + most + " " + dropped);
    }

    /**
     * Waits until a sample stands for several times as much as it does without a budget: for events, of which
     * each is sampled at first, or for CPU time. The threads of {@code cpu} and {@code wall} spin. Without a
     * budget such a thread is sampled at each tick of its clock, which is at most 10 ms long, and each time
     * that it gets a processor.
     */
    private static void waitUntilStretched(String engine, LongSupplier events) throws InterruptedException {
        long leastEach = engine.equals("cpu") ? 12_000_000 : engine.equals("wall") ? 5_000_000 : 4;
        LongSupplier amount = leastEach > 4 ? Native::processCpuNanos : events;
        long deadline = System.nanoTime() + PATIENCE_NS;
        long lastAmount = amount.getAsLong();
        long lastTaken = counter(engine + ".samples_taken");
        while (true) {
            Thread.sleep(200);
            long taken = counter(engine + ".samples_taken");
            long now = amount.getAsLong();
            if (taken >= LEAST_TAKEN && now - lastAmount >= (taken - lastTaken + 1) * leastEach) {
                return;
            }
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("sampled as often as ever: " + PROFILER.status());
            }
            lastTaken = taken;
            lastAmount = now;
        }
    }

    /** A counter of the session so far; one that is not printed is 0. */
    private static long counter(String name) {
        for (String word : PROFILER.status().split("[ ;]+")) {
            if (word.startsWith(name + "=")) {
                return Long.parseLong(word.substring(name.length() + 1));
            }
        }
        return 0;
    }
}
