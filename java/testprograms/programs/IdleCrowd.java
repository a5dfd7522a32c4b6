package programs;

import java.util.concurrent.CountDownLatch;

/**
 * Threads that wait for the program's end: their number is the first argument. The program runs for as many
 * seconds as the second argument says after the last thread has begun to wait. The third argument is the
 * number of threads that run beside them, 0 without it. Prints the times when the last thread had begun to
 * wait and when the first may end, in nanoseconds since 1970.
 */
public class IdleCrowd {
    private static final CountDownLatch END = new CountDownLatch(1);

    /** The result of the running threads' work, which the compiler therefore keeps. */
    private static volatile long sink;

    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[0]);
        CountDownLatch waiting = new CountDownLatch(count);
        for (int i = 0; i < count; i++) {
            start("idle", () -> await(waiting));
        }
        int running = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 0;
        for (int i = 0; i < running; i++) {
            start("running", IdleCrowd::run);
        }
        waiting.await();
        System.out.println(now());
        Thread.sleep(1000 * Long.parseLong(arguments[1]));
        System.out.println(now());
    }

    private static void start(String name, Runnable work) {
        Thread thread = new Thread(null, work, name, 256 << 10);
        thread.setDaemon(true);
        thread.start();
    }

    private static void run() {
        for (long i = 0; ; i++) {
            if (i % 1_000_000 == 0) {
                sink = i;
            }
        }
    }

    private static void await(CountDownLatch waiting) {
        waiting.countDown();
        try {
            END.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static long now() {
        java.time.Instant now = java.time.Instant.now();
        return now.getEpochSecond() * 1_000_000_000L + now.getNano();
    }
}
