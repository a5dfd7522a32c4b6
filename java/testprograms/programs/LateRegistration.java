package programs;

import io.otlpprof.Otlpprof;

/**
 * A thread that waits for long, and then registers itself to be sampled while it works. Prints the
 * milliseconds from its registration to the end of its work, after which it sends the samples so far, and
 * those from its registration to its end: {@code LEAST MOST}.
 */
public final class LateRegistration {
    private static volatile long registeredNanos;
    private static volatile long workedNanos;

    private LateRegistration() {}

    public static void main(String[] args) throws Exception {
        Thread thread = new Thread(LateRegistration::run, "late");
        thread.start();
        thread.join();
        long lived = System.nanoTime() - registeredNanos;
        System.out.println((workedNanos - registeredNanos) / 1_000_000 + " " + lived / 1_000_000);
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
        workedNanos = System.nanoTime();
        // At the end of an interval all time up to then is credited, even if the next visit would come late.
        Otlpprof.getInstance().flush();
    }
}
