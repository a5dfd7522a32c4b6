package programs;

import java.io.InputStream;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import jdk.jfr.DataAmount;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;
import jdk.jfr.Timestamp;

/**
 * Causes all kinds of events of a flight recording: {@code Recorded [SECONDS [NAME]]}. NAME is the name of
 * the thread that computes. The work is CPU work, allocation, locks, waits, parks, sleeps, exceptions, files,
 * sockets, deep stacks, classes, virtual threads from 21 on, and two types of events of its own, one of which
 * is registered only after some time.
 */
public final class Recorded {
    private Recorded() {}

    /** An event with a field of every possible type. */
    @Name("programs.EveryField")
    @Label("Every field")
    public static final class EveryField extends Event {
        boolean yes;
        byte small;
        short shorter;
        char character;
        int number;
        long big;
        float single;
        double twice;
        String latin;
        String wide;
        String planes;
        String lengthy;
        String empty;
        String none;
        Class<?> type;
        Thread thread;

        @Timespan(Timespan.MICROSECONDS)
        long span;

        @Timestamp(Timestamp.MILLISECONDS_SINCE_EPOCH)
        long moment;

        @DataAmount long bytes;
    }

    /** An event of a type that is registered late. */
    @Name("programs.Late")
    @StackTrace(false)
    public static final class Late extends Event {
        int number;
    }

    private static final int TURNS_BEFORE_LATE = 20;

    static volatile Object sink;
    static volatile double number;
    private static final Object LOCK = new Object();

    public static void main(String[] args) throws Exception {
        Clock clock = new Clock(args, 2);
        List<Thread> threads = new ArrayList<>();
        String name = args.length > 1 ? args[1] : "computing-\u00e4\u20ac\ud83d\udc00";
        threads.add(new Thread(() -> compute(clock), name));
        threads.add(new Thread(() -> allocate(clock), "allocating"));
        threads.add(new Thread(() -> contend(clock), "contending-1"));
        threads.add(new Thread(() -> contend(clock), "contending-2"));
        threads.add(new Thread(() -> quietly(() -> files(clock)), "files"));
        threads.add(new Thread(() -> quietly(() -> sockets(clock)), "sockets"));
        threads.add(new Thread(() -> quietly(() -> waits(clock)), "waiting"));
        threads.add(new Thread(() -> exceptions(clock), "exceptions"));
        for (Thread thread : threads) {
            thread.start();
        }
        for (int i = 0; Threads.canBeVirtual() && i < 4; i++) {
            threads.add(Threads.startVirtual(() -> quietly(() -> waits(clock))));
        }
        // On a busy machine the time is over before all kinds of events have been committed.
        for (long turns = 1; clock.isRunning() || turns <= 2 * TURNS_BEFORE_LATE; turns++) {
            everyField(turns - 1);
            if (turns > TURNS_BEFORE_LATE) {
                late(turns);
            }
            Thread.sleep(20);
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private interface Task {
        void run() throws Exception;
    }

    private static void quietly(Task task) {
        try {
            task.run();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static void everyField(long turn) {
        EveryField event = new EveryField();
        event.begin();
        event.yes = turn % 2 == 0;
        event.small = (byte) -turn;
        event.shorter = (short) (-300 * turn);
        event.character = (char) (0x20ac + turn);
        event.number = (int) (turn % 2 == 0 ? -turn : Integer.MAX_VALUE - turn);
        event.big = turn % 2 == 0 ? Long.MIN_VALUE + turn : turn << 40;
        event.single = turn / 3f;
        event.twice = -turn / 7.0;
        event.latin = "caf\u00e9 " + turn;
        event.wide = "price \u20ac " + turn % 5;
        event.planes = "mouse \ud83d\udc2d " + turn % 5;
        event.lengthy = "a text that goes into the pool of strings \u20ac " + turn % 3;
        event.empty = "";
        event.none = null;
        event.type = turn % 3 == 0 ? null : turn % 3 == 1 ? String[].class : Recorded.class;
        event.thread = turn % 4 == 0 ? null : Thread.currentThread();
        event.span = turn * 1_000;
        event.moment = 1_700_000_000_000L + turn;
        event.bytes = turn * 4_096;
        event.commit();
    }

    private static void late(long turn) {
        Late event = new Late();
        event.number = (int) turn;
        event.commit();
    }

    private static void compute(Clock clock) {
        while (clock.isRunning()) {
            recurse(70, clock);
        }
    }

    private static void recurse(int depth, Clock clock) {
        if (depth > 0) {
            recurse(depth - 1, clock);
            return;
        }
        double sum = 0;
        for (int i = 1; i < 2_000_000; i++) {
            sum += Math.sin(i) / i;
        }
        number = sum;
    }

    private static void allocate(Clock clock) {
        while (clock.isRunning()) {
            for (int i = 0; i < 600; i++) {
                sink = new byte[1_000 + i];
                sink = new long[i];
            }
            sink = new byte[4 << 20];
            sink = new int[10][100];
            pause(2);
        }
    }

    private static void contend(Clock clock) {
        while (clock.isRunning()) {
            synchronized (LOCK) {
                pause(3);
            }
            LockSupport.parkNanos(500_000);
        }
    }

    private static void waits(Clock clock) throws InterruptedException {
        Object own = new Object();
        while (clock.isRunning()) {
            synchronized (own) {
                own.wait(5);
            }
            LockSupport.parkNanos(own, 2_000_000);
            Thread.sleep(4);
        }
    }

    private static void files(Clock clock) throws Exception {
        Path path = Files.createTempFile("recorded", ".bin");
        try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
            byte[] bytes = new byte[10_000];
            while (clock.isRunning()) {
                file.seek(0);
                file.write(bytes);
                file.getFD().sync();
                file.seek(0);
                file.readFully(bytes);
                pause(10);
            }
        } finally {
            Files.delete(path);
        }
    }

    private static void sockets(Clock clock) throws Exception {
        try (ServerSocket server = new ServerSocket(0, 5, InetAddress.getLoopbackAddress())) {
            Thread echo = new Thread(() -> quietly(() -> {
                try (Socket socket = server.accept()) {
                    InputStream in = socket.getInputStream();
                    OutputStream out = socket.getOutputStream();
                    byte[] bytes = new byte[100];
                    for (int length; (length = in.read(bytes)) > 0; ) {
                        pause(3);
                        out.write(bytes, 0, length);
                    }
                }
            }), "echo");
            echo.start();
            try (Socket socket = new Socket(server.getInetAddress(), server.getLocalPort())) {
                byte[] bytes = new byte[80];
                while (clock.isRunning()) {
                    socket.getOutputStream().write(bytes);
                    if (socket.getInputStream().read(bytes) < 0) {
                        break;
                    }
                }
            }
            echo.join();
        }
    }

    private static void exceptions(Clock clock) {
        long turn = 0;
        while (clock.isRunning()) {
            try {
                throw new IllegalArgumentException("thrown " + turn++ % 7);
            } catch (IllegalArgumentException e) {
                sink = e;
            }
            pause(5);
        }
    }

    private static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
