package programs;

import io.otlpprof.Otlpprof;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * Threads that each stay in one state: {@code ThreadStates SECONDS THREADS}, with THREADS parked ones. Prints
 * a line {@code STATE LEAST MOST} for all threads of each state together: how long they were certainly in it,
 * and how long they existed, in nanoseconds. Prints {@code sleeps TIMES}: how often the parked threads have
 * gone to sleep since all were ready. Each goes to sleep once only.
 */
public final class ThreadStates {
    private ThreadStates() {}

    private static final Object HELD = new Object();
    private static final Object NOTIFIED = new Object();
    private static final String RUNNING = "running";
    /** The times at which the threads of each state were created, and at which they began to run. */
    private static final Map<String, Queue<Long>> CREATED = new ConcurrentHashMap<>();
    private static final Map<String, Queue<Long>> STARTS = new ConcurrentHashMap<>();

    private static volatile boolean over;

    public static void main(String[] args) throws Exception {
        long millis = Long.parseLong(args[0]) * 1000;
        int parked = Integer.parseInt(args[1]);
        ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        Socket client = new Socket(server.getInetAddress(), server.getLocalPort());
        Socket accepted = server.accept();
        CountDownLatch started = new CountDownLatch(parked + 5);
        synchronized (HELD) {
            start(RUNNING, started, ThreadStates::run);
            start("blocked", started, ThreadStates::enter);
            start("waiting", started, ThreadStates::await);
            start("sleeping", started, () -> sleep(1_000_000));
            start("native", started, () -> read(accepted));
            for (int i = 0; i < parked; i++) {
                start("parked", started, ThreadStates::park);
            }
            started.await();
            long sleepsBefore = sleepsOfParked();
            sleep(millis);
            long now = System.nanoTime();
            long sleeps = sleepsOfParked() - sleepsBefore;
            // The time that the JVM takes to end is not in the threads' measurements.
            Otlpprof.getInstance().stop();
            long stopped = System.nanoTime();
            for (String state : STARTS.keySet()) {
                // A thread that runs, or that waits for a processor, is not in another state yet.
                long ready = state.equals(RUNNING) ? 0 : readyNanos(state);
                long least = sum(now, STARTS.get(state)) - ready;
                System.out.println(state + " " + least + " " + sum(stopped, CREATED.get(state)));
            }
            System.out.println("sleeps " + sleeps);
            System.exit(client.isClosed() ? 1 : 0);
        }
    }

    /** The sum of the times from each of {@code since} to {@code until}. */
    private static long sum(long until, Queue<Long> since) {
        long sum = 0;
        for (long start : since) {
            sum += until - start;
        }
        return sum;
    }

    /** A number that the kernel has for each thread, by the thread's folder. */
    private interface OfTask {
        long of(Path task) throws IOException;
    }

    private static long sleepsOfParked() throws IOException {
        return sum("parked", ThreadStates::sleepsOf);
    }

    /** How long threads of this name have run or waited for a processor so far. */
    private static long readyNanos(String name) throws IOException {
        return sum(name, task -> {
            // The kernel's sched-stats: schedstat.
            String[] times = Files.readString(task.resolve("schedstat")).split(" ");
            return Long.parseLong(times[0]) + Long.parseLong(times[1]);
        });
    }

    /** The sum of a number over all threads of this name (proc(5): comm). */
    private static long sum(String name, OfTask number) throws IOException {
        long sum = 0;
        try (DirectoryStream<Path> tasks = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            for (Path task : tasks) {
                try {
                    if (Files.readString(task.resolve("comm")).trim().equals(name)) {
                        sum += number.of(task);
                    }
                } catch (IOException e) {
                    // A thread of the JVM that has ended.
                    if (Files.exists(task)) {
                        throw e;
                    }
                }
            }
        }
        return sum;
    }

    /** By the kernel's count (proc(5): voluntary_ctxt_switches of status). */
    private static long sleepsOf(Path task) throws IOException {
        String key = "voluntary_ctxt_switches:";
        for (String line : Files.readAllLines(task.resolve("status"))) {
            if (line.startsWith(key)) {
                return Long.parseLong(line.substring(key.length()).trim());
            }
        }
        throw new AssertionError(task + " has no " + key);
    }

    private static void start(String name, CountDownLatch started, Runnable task) {
        Thread thread = new Thread(null, () -> {
            STARTS.computeIfAbsent(name, state -> new ConcurrentLinkedQueue<>()).add(System.nanoTime());
            started.countDown();
            task.run();
        }, name, 256 * 1024);
        thread.setDaemon(true);
        CREATED.computeIfAbsent(name, state -> new ConcurrentLinkedQueue<>()).add(System.nanoTime());
        thread.start();
    }

    private static void run() {
        while (!over) {
            Thread.onSpinWait();
        }
    }

    private static void enter() {
        synchronized (HELD) {
            over = true;
        }
    }

    private static void await() {
        synchronized (NOTIFIED) {
            try {
                NOTIFIED.wait();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    private static void sleep(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void read(Socket socket) {
        try (InputStream in = socket.getInputStream()) {
            in.read();
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void park() {
        while (!over) {
            LockSupport.park();
        }
    }
}
