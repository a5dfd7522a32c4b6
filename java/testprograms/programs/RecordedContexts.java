package programs;

import io.otlpprof.ContextScope;
import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.io.File;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import jdk.jfr.Event;
import jdk.jfr.FlightRecorder;
import jdk.jfr.Recording;
import jdk.jfr.RecordingState;

/**
 * Events of the JVM's recorder in threads that change their context all the time: {@code RecordedContexts ROUNDS THREADS
 * [virtual|stop]}. What an event's thread works for is in its stack: {@code work0} to {@code work3}, or {@code nothing}. Waits
 * for the agent's recording to begin, and prints how many events of each kind there were, {@code KIND METHOD NUMBER}. With
 * {@code stop} it stops the agent itself, and says how many recordings and files of theirs are left.
 */
public final class RecordedContexts {
    private static final ContextSetter CONTEXT = new ContextSetter(Otlpprof.getInstance(), List.of("rest_endpoint"));
    private static final String[] ENDPOINTS = {"/e0", "/e1", "/e2", "/e3"};
    private static final String[] METHODS = {"work0", "work1", "work2", "work3", "nothing"};
    private static final AtomicLong[] ROUNDS = new AtomicLong[METHODS.length];

    private RecordedContexts() {}

    /** An event without a duration. */
    static final class Done extends Event {
        long items;
    }

    /** What is thrown. */
    private static final class Thrown extends Exception {
        private static final long serialVersionUID = 1;
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        int threads = Integer.parseInt(args[1]);
        boolean virtual = args.length > 2 && args[2].equals("virtual");
        awaitRecording();
        for (int method = 0; method < METHODS.length; method++) {
            ROUNDS[method] = new AtomicLong();
        }
        List<Thread> started = new ArrayList<>();
        for (int n = 0; n < threads; n++) {
            int first = n;
            started.add(start(virtual, () -> rounds(first, rounds)));
        }
        for (Thread thread : started) {
            thread.join();
        }
        for (int method = 0; method < METHODS.length; method++) {
            for (String kind : new String[] {"exceptions", "sleeps", "events"}) {
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

    /** The recorder's directory: its name ends with the process's id. */
    private static File repository() {
        File[] found = new File(System.getProperty("java.io.tmpdir"))
                .listFiles((directory, name) -> name.endsWith("_" + ProcessHandle.current().pid()));
        return found == null || found.length == 0 ? null : found[0];
    }

    private static void awaitRecording() throws InterruptedException {
        while (true) {
            for (Recording recording : FlightRecorder.getFlightRecorder().getRecordings()) {
                if (recording.getState() == RecordingState.RUNNING && "otlpprof".equals(recording.getName())) {
                    return;
                }
            }
            Thread.sleep(5);
        }
    }

    private static Thread start(boolean virtual, Runnable task) throws Exception {
        if (virtual) {
            Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
            return (Thread) start.invoke(null, task);
        }
        Thread thread = new Thread(task);
        thread.start();
        return thread;
    }

    private static void rounds(int first, int rounds) {
        for (int round = 0; round < rounds; round++) {
            int which = (first + round) % 5;
            try {
                switch (which) {
                    case 0:
                        set(0);
                        work0();
                        break;
                    case 1:
                        set(1);
                        work1();
                        break;
                    case 2:
                        set(2);
                        work2();
                        break;
                    case 3:
                        // The one before comes back when the scope is closed.
                        ContextScope scope = CONTEXT.openScope();
                        set(3);
                        work3();
                        scope.close();
                        break;
                    default:
                        CONTEXT.clear();
                        nothing();
                        break;
                }
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            ROUNDS[which].incrementAndGet();
        }
    }

    private static void set(int which) {
        long id = 0x0101010101010101L * (which + 1);
        CONTEXT.setTraceContext(id, id, id, 1);
        CONTEXT.setAttribute(0, ENDPOINTS[which]);
    }

    private static void work0() throws InterruptedException {
        work();
    }

    private static void work1() throws InterruptedException {
        work();
    }

    private static void work2() throws InterruptedException {
        work();
    }

    private static void work3() throws InterruptedException {
        work();
    }

    private static void nothing() throws InterruptedException {
        work();
    }

    private static void work() throws InterruptedException {
        Thread.sleep(2);
        Done done = new Done();
        done.items = 3;
        done.commit();
        try {
            throw new Thrown();
        } catch (Thrown e) {
            // That is all.
        }
    }
}
