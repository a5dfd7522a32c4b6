package programs;

import io.otlpprof.Otlpprof;
import java.util.ArrayList;
import java.util.List;

/**
 * Sessions that follow one another, while threads ask each session to flush: {@code StopsAndFlushes
 * SESSIONS}. Other threads burn meanwhile.
 */
public final class StopsAndFlushes {
    private static volatile boolean done;

    private StopsAndFlushes() {}

    public static void main(String[] args) throws Exception {
        Otlpprof profiler = Otlpprof.getInstance();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            threads.add(new Thread(() -> flush(profiler)));
            threads.add(new Thread(StopsAndFlushes::burn));
        }
        threads.forEach(Thread::start);
        for (int session = 0; session < Integer.parseInt(args[0]); session++) {
            if (!profiler.start(System.getenv("AGENT_OPTIONS"))) {
                throw new AssertionError();
            }
            Thread.sleep(20);
            profiler.stop();
        }
        done = true;
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("done");
    }

    private static void flush(Otlpprof profiler) {
        while (!done) {
            profiler.flush();
        }
    }

    private static void burn() {
        long x = 1;
        while (!done) {
            x = Work.mix(x);
        }
        Work.sink = x;
    }
}
