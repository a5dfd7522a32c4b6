package programs;

import io.otlpprof.Otlpprof;

/** A thread that waits for long, and then registers itself to be sampled while it works. */
public final class LateRegistration {
    private LateRegistration() {}

    public static void main(String[] args) throws Exception {
        Thread thread = new Thread(LateRegistration::run, "late");
        thread.start();
        thread.join();
        System.out.println("done");
    }

    private static void run() {
        try {
            Thread.sleep(2000);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
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
