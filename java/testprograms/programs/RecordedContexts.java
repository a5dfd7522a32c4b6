package programs;

import io.otlpprof.ContextScope;
import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import jdk.jfr.Event;
import jdk.jfr.FlightRecorder;
import jdk.jfr.Recording;
import jdk.jfr.RecordingState;

/**
 * Events of the JVM's recorder in threads that change their context all the time: {@code RecordedContexts
 * ROUNDS THREADS [virtual|stop]}. The stack of an event shows the expected context: {@code work0} to {@code
 * work3}, or {@code nothing}. Waits for the agent's recording to begin, and prints the number of events of
 * each kind, {@code KIND METHOD NUMBER}. Only the JVM counts the events of allocation and execution. With
 * {@code stop} the program stops the agent itself, and prints how many recordings, and files of recordings,
 * are left.
 */
public final class RecordedContexts {
    private static final ContextSetter CONTEXT =
            new ContextSetter(Otlpprof.getInstance(), List.of("rest_endpoint"));
    private static final String[] ENDPOINTS = {"/e0", "/e1", "/e2", "/e3"};
    private static final String[] METHODS = {"work0", "work1", "work2", "work3", "nothing"};
    private static final AtomicLong[] ROUNDS = new AtomicLong[METHODS.length];

    /** An answer arrives this long after the request. */
    private static final long ANSWER_MILLIS = 2;

    private static final int ALLOCATED = 2_000;

    static volatile Object sink;
    static volatile double number;

    private RecordedContexts() {}

    /** An event without a duration. */
    static final class Done extends Event {
        long items;
    }

    /** The exception that the program throws. */
    private static final class Thrown extends Exception {
        private static final long serialVersionUID = 1;
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        int threads = Integer.parseInt(args[1]);
        boolean virtual = args.length > 2 && args[2].equals("virtual");
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            // The first execution of some operations makes the VM throw and catch exceptions of its own.
            begin(server, virtual, Turn::work).join();
        }
        awaitRecording();
        for (int method = 0; method < METHODS.length; method++) {
            ROUNDS[method] = new AtomicLong();
        }
        List<Thread> started = new ArrayList<>();
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            for (int n = 0; n < threads; n++) {
                int first = n;
                started.add(begin(server, virtual, turn -> rounds(first, rounds, turn)));
            }
            for (Thread thread : started) {
                thread.join();
            }
        }
        for (int method = 0; method < METHODS.length; method++) {
            for (String kind : new String[] {"exceptions", "sleeps", "events", "parks", "reads"}) {
                System.out.println(kind + " " + METHODS[method] + " " + ROUNDS[method]);
            }
        }
        if (args.length > 2 && args[2].equals("stop")) {
            Otlpprof.getInstance().stop();
            File repository = repository();
            String[] files = repository == null ? null : repository.list();
            System.out.println("left " + FlightRecorder.getFlightRecorder().getRecordings().size() + "+"
                    + (files == null ? 0 : files.length));
        }
    }

    /** The recorder's directory. Its name ends with the process's id. */
    private static File repository() {
        File[] found = new File(System.getProperty("java.io.tmpdir"))
                .listFiles((directory, name) -> name.endsWith("_" + ProcessHandle.current().pid()));
        return found == null || found.length == 0 ? null : found[0];
    }

    private static void awaitRecording() throws InterruptedException {
        while (true) {
            for (Recording recording : FlightRecorder.getFlightRecorder().getRecordings()) {
                if (recording.getState() == RecordingState.RUNNING
                        && "otlpprof".equals(recording.getName())) {
                    return;
                }
            }
            Thread.sleep(5);
        }
    }

    private interface Work {
        void on(Turn turn) throws IOException, InterruptedException;
    }

    /** Starts a thread that works, and another that answers it. */
    private static Thread begin(ServerSocket server, boolean virtual, Work work) throws Exception {
        Socket asks = new Socket(server.getInetAddress(), server.getLocalPort());
        Socket answers = server.accept();
        Threads.start(false, () -> answer(answers));
        return Threads.start(virtual, () -> {
            try (asks) {
                work.on(new Turn(asks));
            } catch (IOException | InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
    }

    /** Answers each byte after a delay, until the other side is closed. */
    private static void answer(Socket socket) {
        try (socket) {
            for (int asked; (asked = socket.getInputStream().read()) >= 0; ) {
                Thread.sleep(ANSWER_MILLIS);
                socket.getOutputStream().write(asked);
            }
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void rounds(int first, int rounds, Turn turn) throws IOException, InterruptedException {
        for (int round = 0; round < rounds; round++) {
            int which = (first + round) % 5;
            switch (which) {
                case 0:
                    set(0);
                    work0(turn);
                    break;
                case 1:
                    set(1);
                    work1(turn);
                    break;
                case 2:
                    set(2);
                    work2(turn);
                    break;
                case 3:
                    // The previous context is restored when the scope is closed.
                    ContextScope scope = CONTEXT.openScope();
                    set(3);
                    work3(turn);
                    scope.close();
                    break;
                default:
                    CONTEXT.clear();
                    nothing(turn);
                    break;
            }
            ROUNDS[which].incrementAndGet();
        }
    }

    private static void set(int which) {
        long id = 0x0101010101010101L * (which + 1);
        CONTEXT.setTraceContext(id, id, id, 1);
        CONTEXT.setAttribute(0, ENDPOINTS[which]);
    }

    private static void work0(Turn turn) throws IOException, InterruptedException {
        turn.work();
    }

    private static void work1(Turn turn) throws IOException, InterruptedException {
        turn.work();
    }

    private static void work2(Turn turn) throws IOException, InterruptedException {
        turn.work();
    }

    private static void work3(Turn turn) throws IOException, InterruptedException {
        turn.work();
    }

    private static void nothing(Turn turn) throws IOException, InterruptedException {
        turn.work();
    }

    /** The work that is done in each method. */
    private static final class Turn {
        private final Socket socket;

        Turn(Socket socket) {
            this.socket = socket;
        }

        void work() throws IOException, InterruptedException {
            Thread.sleep(2);
            Done done = new Done();
            done.items = 3;
            done.commit();
            try {
                throw new Thrown();
            } catch (Thrown e) {
                // The exception is only thrown to be caught.
            }
            LockSupport.parkNanos(2_000_000);
            socket.getOutputStream().write(1);
            if (socket.getInputStream().read() != 1) {
                throw new IllegalStateException("no answer");
            }
            for (int i = 0; i < 20; i++) {
                sink = new byte[ALLOCATED];
            }
            double sum = 0;
            for (int i = 1; i < 20_000; i++) {
                sum += Math.sin(i) / i;
            }
            number = sum;
        }
    }
}
