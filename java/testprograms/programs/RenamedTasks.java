package programs;

import java.util.concurrent.CountDownLatch;

/**
 * Threads that rename themselves for each task, as pools do: {@code RenamedTasks SECONDS [virtual]}. Each is
 * named task-a in the method {@code a}, and task-b in {@code b}. With {@code virtual}, virtual threads do
 * this on their carriers. Ends when each thread has used the given CPU time.
 */
public final class RenamedTasks {
    private RenamedTasks() {}

    public static void main(String[] args) throws Exception {
        double seconds = Double.parseDouble(args[0]);
        boolean isVirtual = args.length > 1;
        CountDownLatch end = new CountDownLatch(2);
        for (int i = 0; i < 2; i++) {
            Runnable body = () -> {
                run(seconds);
                end.countDown();
            };
            if (isVirtual) {
                Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, body);
            } else {
                new Thread(body, "before").start();
            }
        }
        end.await();
    }

    private static void run(double seconds) {
        // A virtual thread cannot ask for its CPU time, so rounds of work stand for it.
        long rounds = (long) (seconds * 1000);
        before();
        for (long i = 0; i < rounds; i++) {
            Thread.currentThread().setName("task-a");
            a();
            Thread.currentThread().setName("task-b");
            b();
        }
    }

    /** Works under the name that the thread was started with. */
    private static void before() {
        for (int i = 0; i < 1000; i++) {
            work();
        }
    }

    private static void a() {
        for (int i = 0; i < 3; i++) {
            work();
        }
    }

    private static void b() {
        work();
    }

    /** Takes some hundreds of microseconds. */
    private static void work() {
        long x = 1;
        for (int i = 0; i < 100_000; i++) {
            x = Work.mix(x);
        }
        Work.sink = x;
    }
}
