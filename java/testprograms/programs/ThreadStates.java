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
 * how long they were in it, a line {@code STATE NANOSECONDS} for all threads of each state together, and
 * {@code sleeps TIMES}: how often the parked threads have gone to sleep since all were ready. Each goes to
 * sleep once only.
 */
public final class ThreadStates {
    private ThreadStates() {}

    private static final Object HELD = new Object();
    private static final Object NOTIFIED = new Object();
    /** The start times of the threads of each state. */
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
            start("running", started, ThreadStates::run);
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
            STARTS.forEach((state, starts) -> {
                long sum = 0;
                for (long start : starts) {
                    sum += now - start;
                }
                System.out.println(state + " " + sum);
            });
            System.out.println("sleeps " + sleeps);
            System.exit(client.isClosed() ? 1 : 0);
        }
    }

    /** By the kernel's counts (proc(5): comm, and voluntary_ctxt_switches of status). */
    private static long sleepsOfParked() throws IOException {
        long sum = 0;
        try (DirectoryStream<Path> tasks = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            for (Path task : tasks) {
                try {
                    if (Files.readString(task.resolve("comm")).trim().equals("parked")) {
                        sum += sleepsOf(task);
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
