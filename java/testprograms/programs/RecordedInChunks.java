package programs;

import java.util.concurrent.locks.LockSupport;
import jdk.jfr.Recording;

/**
 * A deep stack that runs, allocates, waits and throws, and does so again after each of CHUNKS changes of the
 * chunk: {@code RecordedInChunks CHUNKS}.
 */
public final class RecordedInChunks {
    /** Deeper than the stacks that the corpus records. */
    private static final int DEPTH = 600;

    static volatile Object sink;
    static volatile double number;

    private RecordedInChunks() {}

    public static void main(String[] args) throws InterruptedException {
        int chunks = Integer.parseInt(args[0]);
        for (int chunk = 0; chunk < chunks; chunk++) {
            if (chunk > 0) {
                // The VM begins a new chunk when a recording starts.
                try (Recording other = new Recording()) {
                    other.start();
                }
            }
            Thread thread = new Thread(null, () -> descend(DEPTH), "deep", 16 << 20);
            thread.start();
            thread.join();
        }
    }

    private static void descend(int depth) {
        if (depth > 0) {
            descend(depth - 1);
            return;
        }
        long end = System.nanoTime() + 60_000_000;
        for (int turn = 0; System.nanoTime() < end; turn++) {
            traced(turn);
        }
        LockSupport.parkNanos(1_000_000);
        try {
            throw new IllegalStateException("thrown");
        } catch (IllegalStateException e) {
            sink = e;
        }
    }

    /** The method that JDK 25 and later are configured to trace. */
    private static void traced(int turn) {
        double sum = turn;
        for (int i = 1; i < 200_000; i++) {
            sum += Math.sin(i) / i;
        }
        number = sum;
    }
}
