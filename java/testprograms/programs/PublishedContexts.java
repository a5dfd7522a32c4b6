package programs;

import io.otlpprof.ContextScope;
import io.otlpprof.ContextSetter;
import io.otlpprof.ContextSnapshot;
import io.otlpprof.Otlpprof;
import java.util.List;

/**
 * Threads whose contexts name their threads: {@code PublishedContexts THREADS SECONDS}. The first half of a
 * trace id is the kernel's id of the thread, the second half counts the thread's turns, and the span id and
 * each attribute follow from both. Other threads start and end meanwhile with contexts of the same form, and
 * one thread never changes its context again. Prints {@code names} when another attribute has been named, and
 * continues.
 */
public final class PublishedContexts {
    private static final Otlpprof PROFILER = Otlpprof.getInstance();
    private static final ContextSetter CONTEXT =
            new ContextSetter(PROFILER, List.of("worker", "step", "long0", "long1", "long2"));

    private PublishedContexts() {}

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]);
        Clock clock = new Clock(new String[] {args[1]}, 1);
        for (int i = 0; i < threads; i++) {
            new Thread(() -> set(clock, Integer.MAX_VALUE), "setter-" + i).start();
        }
        Thread idle = new Thread(() -> stay(clock), "idle");
        idle.start();
        Thread.sleep(200);
        new ContextSetter(PROFILER, List.of("late"));
        System.out.println("names");
        while (clock.isRunning()) {
            Thread thread = new Thread(() -> set(clock, 200), "short");
            thread.start();
            thread.join();
            // The context of this thread stays unchanged until the thread ends.
            Thread last = new Thread(() -> setTurn(Threads.kernelId(), 1, "s1"), "last");
            last.start();
            last.join();
        }
    }

    private static void stay(Clock clock) {
        long id = Threads.kernelId();
        check(CONTEXT.setAttribute("worker", "t" + id));
        setTurn(id, 7, "s7");
        while (clock.isRunning()) {
            burn(7);
            try {
                Thread.sleep(1);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    @SuppressWarnings("try")
    private static void set(Clock clock, int turns) {
        long id = Threads.kernelId();
        String worker = "t" + id;
        StringBuilder text = new StringBuilder(worker).append('-');
        while (text.length() < 200) {
            text.append('x');
        }
        String[] steps = new String[100];
        for (int i = 0; i < steps.length; i++) {
            steps[i] = "s" + i;
        }
        for (int turn = 1; turn < turns && clock.isRunning(); turn++) {
            if (turn % 64 == 1) {
                CONTEXT.clear();
                check(CONTEXT.setAttribute("worker", worker));
                for (int i = 2; i < 5; i++) {
                    check(CONTEXT.setAttribute(i, text.toString()));
                }
            }
            setTurn(id, turn, steps[turn % 100]);
            if (turn % 16 == 0) {
                CONTEXT.clearTraceContext();
                burn(turn);
            }
            if (turn % 7 == 0) {
                ContextSnapshot snapshot = CONTEXT.copy();
                try (ContextScope scope = CONTEXT.openScope()) {
                    CONTEXT.clear();
                    burn(turn);
                    CONTEXT.restore(snapshot);
                    CONTEXT.clearAttribute("step");
                    burn(turn);
                }
            }
        }
    }

    private static void setTurn(long id, long turn, String step) {
        check(CONTEXT.setTraceContext(id, turn, id << 32 ^ turn * 0x9e3779b97f4a7c15L, (int) (turn & 3)));
        check(CONTEXT.setAttribute("step", step));
        burn((int) turn);
    }

    private static void check(boolean done) {
        if (!done && PROFILER.isAvailable()) {
            throw new AssertionError();
        }
    }

    private static void burn(int seed) {
        long x = seed;
        for (int i = 0; i < 200; i++) {
            x = Work.mix(x);
        }
        Work.sink = x;
    }
}
