package programs;

import io.otlpprof.ContextScope;
import io.otlpprof.ContextSetter;
import io.otlpprof.ContextSnapshot;
import io.otlpprof.Otlpprof;
import java.util.List;

/**
 * Threads that change their context all the time: {@code ContextStress [SECONDS [THREADS [ROUNDS [CHURNERS
 * [whole|both]]]]]}. The method that burns shows the expected context: burn2 runs with the endpoint {@code
 * /e2}, and a trace and span id whose bytes are all 3. With many rounds a burn takes long, and the third
 * takes three times as long as the first. With few rounds, changes take most of the time. Churners set one
 * new value after the other, so that values are reclaimed all the time. With {@code whole}, a context is
 * changed by snapshots and scopes only, so that it is always one of the four, or none. With {@code both}, it
 * is changed only by the call that sets a span and the endpoint together.
 */
public final class ContextStress {
    private static final ContextSetter CONTEXT =
            new ContextSetter(
                    Otlpprof.getInstance(),
                    List.of("rest_endpoint", "traceid", "witness", "spanid", "request"));
    private static final int ENDPOINT = CONTEXT.offsetOf("rest_endpoint");
    private static final int TRACE = CONTEXT.offsetOf("traceid");
    private static final int WITNESS = CONTEXT.offsetOf("witness");
    private static final int SPAN = CONTEXT.offsetOf("spanid");
    private static final int REQUEST = CONTEXT.offsetOf("request");
    private static final String[] ENDPOINTS = {"/e0", "/e1", "/e2", "/e3"};
    private static final String[] TRACES = new String[4];
    private static final String[] SPANS = new String[4];
    private static final ContextSnapshot[] SNAPSHOTS = new ContextSnapshot[4];

    private ContextStress() {}

    public static void main(String[] args) throws Exception {
        Clock clock = new Clock(args, 5);
        int threads = args.length > 1 ? Integer.parseInt(args[1]) : 4;
        int rounds = args.length > 2 ? Integer.parseInt(args[2]) : 200;
        for (int i = 0; i < 4; i++) {
            TRACES[i] = ("0" + (i + 1)).repeat(16);
            SPANS[i] = ("0" + (i + 1)).repeat(8);
            // The snapshots are made by another thread than the ones that restore them.
            byNames(i);
            SNAPSHOTS[i] = CONTEXT.copy();
        }
        CONTEXT.clear();
        int churners = args.length > 3 ? Integer.parseInt(args[3]) : 0;
        for (int i = 0; i < churners; i++) {
            String name = "churner-" + i;
            new Thread(() -> churn(name, clock), name).start();
        }
        Thread[] started = new Thread[threads];
        String mode = args.length > 4 ? args[4] : "";
        for (int i = 0; i < threads; i++) {
            int way = i;
            Runnable task = () -> {
                if (mode.equals("both")) {
                    workInBoths(way, clock, rounds);
                } else if (mode.equals("whole")) {
                    workInWholes(clock, rounds);
                } else {
                    work(way, clock, rounds);
                }
            };
            started[i] = new Thread(task, "worker-" + i);
            started[i].start();
        }
        for (Thread thread : started) {
            thread.join();
        }
    }

    @SuppressWarnings("try") // The scope is there to be closed.
    private static void work(int way, Clock clock, int rounds) {
        for (int turn = 0; clock.isRunning(); turn++) {
            int which = turn & 3;
            if (way % 4 == 3) {
                try (ContextScope scope = CONTEXT.openScope()) {
                    set(turn, which);
                    burn(which, rounds);
                }
            } else {
                set(way + turn, which);
                burn(which, rounds);
                if (turn % 7 == 0) {
                    CONTEXT.clear();
                }
            }
        }
    }

    @SuppressWarnings("try") // The scope is there to be closed.
    private static void workInWholes(Clock clock, int rounds) {
        for (int turn = 0; clock.isRunning(); turn++) {
            // Reading the clock takes longer than a change of context.
            for (int i = 0; i < 64; i++) {
                int which = i & 3;
                CONTEXT.restore(SNAPSHOTS[which]);
                burn(which, rounds);
            }
            try (ContextScope scope = CONTEXT.openScope()) {
                CONTEXT.restore(SNAPSHOTS[turn & 3]);
                burn(turn & 3, rounds);
            }
            // The context from before the scope is back.
            burn(3, rounds);
            CONTEXT.clear();
        }
    }

    private static void workInBoths(int way, Clock clock, int rounds) {
        while (clock.isRunning()) {
            // Reading the clock takes longer than a change of context.
            for (int i = 0; i < 64; i++) {
                int which = i & 3;
                setBoth(way, which);
                burn(which, rounds);
                if (i % 7 == 0) {
                    // Clears both by one call, so that neither exists without the other.
                    CONTEXT.setTraceContext(0, 0, 0, 0, ENDPOINT, null);
                }
            }
        }
    }

    private static void setBoth(int way, int which) {
        if (way % 2 == 0) {
            long ids = 0x0101010101010101L * (which + 1);
            CONTEXT.setTraceContext(ids, ids, ids, 1, ENDPOINT, ENDPOINTS[which]);
        } else {
            CONTEXT.setTraceContext(TRACES[which], SPANS[which], 1, ENDPOINT, ENDPOINTS[which]);
        }
    }

    private static void churn(String name, Clock clock) {
        setRequest(name, 0);
        churnOn(name, clock);
    }

    /** The thread has a request label throughout this method. */
    private static void churnOn(String name, Clock clock) {
        for (long i = 1; clock.isRunning(); i++) {
            setRequest(name, i);
        }
    }

    private static void setRequest(String name, long number) {
        if (!CONTEXT.setAttribute(REQUEST, name + "/" + number)) {
            throw new AssertionError("no room");
        }
    }

    private static void set(int way, int which) {
        switch (way & 3) {
            case 0:
                byNames(which);
                break;
            case 1:
                long ids = 0x0101010101010101L * (which + 1);
                if ((way & 4) == 0) {
                    CONTEXT.setTraceContext(ids, ids, ids, 1, ENDPOINT, ENDPOINTS[which]);
                } else {
                    CONTEXT.setTraceContext(ids, ids, ids, 1);
                    CONTEXT.setAttribute(ENDPOINT, ENDPOINTS[which]);
                }
                CONTEXT.setAttribute(WITNESS, ENDPOINTS[which]);
                break;
            case 2:
                CONTEXT.setTraceContext(TRACES[which], SPANS[which], 1);
                CONTEXT.setAttribute(WITNESS, "/e" + which);
                CONTEXT.setAttribute("rest_endpoint", "/e" + which);
                break;
            default:
                CONTEXT.restore(SNAPSHOTS[which]);
                break;
        }
    }

    private static void byNames(int which) {
        CONTEXT.setAttribute(TRACE, TRACES[which]);
        CONTEXT.setAttribute(SPAN, SPANS[which]);
        CONTEXT.setAttribute(ENDPOINT, ENDPOINTS[which]);
        CONTEXT.setAttribute(WITNESS, ENDPOINTS[which]);
    }

    private static void burn(int which, int rounds) {
        switch (which) {
            case 0:
                burn0(rounds);
                break;
            case 1:
                burn1(2 * rounds);
                break;
            case 2:
                burn2(3 * rounds);
                break;
            default:
                burn3(4 * rounds);
                break;
        }
    }

    private static void burn0(int rounds) {
        Work.sink = turn(rounds);
    }

    private static void burn1(int rounds) {
        Work.sink = turn(rounds) + 1;
    }

    private static void burn2(int rounds) {
        Work.sink = turn(rounds) + 2;
    }

    private static void burn3(int rounds) {
        Work.sink = turn(rounds) + 3;
    }

    private static long turn(int rounds) {
        long x = Work.sink;
        for (int i = 0; i < rounds; i++) {
            x = Work.mix(x);
        }
        return x;
    }
}
