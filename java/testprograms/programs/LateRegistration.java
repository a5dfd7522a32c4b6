package programs;

import io.otlpprof.Otlpprof;

/**
 * A thread that waits for long, and then registers itself to be sampled while it works. Prints the
 * milliseconds from its registration to its end.
 */
public final class LateRegistration {
    private static volatile long registeredNanos;

    private LateRegistration() {}

    public static void main(String[] args) throws Exception {
        Thread thread = new Thread(LateRegistration::run, "late");
        thread.start();
        thread.join();
        System.out.println((System.nanoTime() - registeredNanos) / 1_000_000);
    }

    private static void run() {
        try {
            Thread.sleep(2000);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        registeredNanos = System.nanoTime();
        if (!Otlpprof.getInstance().addThread()) {
            throw new AssertionError();
        }
        long begin = System.nanoTime();
        long x = 1;
        while (System.nanoTime() - begin < 500_000_000) {
            x = Work.mix(x);
        }
        Work.sink = x;
    }
}
