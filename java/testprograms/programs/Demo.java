package programs;

import java.util.ArrayList;
import java.util.List;
import java.util.function.LongUnaryOperator;

/**
 * The sample program: {@code Demo [SECONDS]}. Five named threads burn CPU in Java methods (nested, inlined,
 * in lambdas, deep in a recursion), in libddproftest, in libc, and in Java that native code calls, which Java
 * has called.
 */
public final class Demo {
    private static final int RECURSION_DEPTH = 200;
    /** Some tenths of a second of CPU time. On a busy machine a thread may get less within the given time. */
    private static final int LEAST_ROUNDS = 100;

    private Demo() {}

    public static void main(String[] args) throws InterruptedException {
        Clock clock = new Clock(args, 10);
        List<Thread> threads = new ArrayList<>();
        threads.add(repeat("demo-java", clock, Demo::nested));
        threads.add(repeat("demo-recursion", clock, () -> Work.sink = recurse(RECURSION_DEPTH, 1)));
        threads.add(repeat("demo-native", clock, Demo::inLibrary));
        threads.add(repeat("demo-libc", clock, Demo::inLibc));
        threads.add(repeat("demo-upcall", clock, () -> Native.upcall(Demo::calledFromNative)));
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("Demo done");
    }

    private static Thread repeat(String name, Clock clock, Runnable task) {
        Thread thread = new Thread(() -> {
            for (int round = 0; round < LEAST_ROUNDS || clock.isRunning(); round++) {
                task.run();
            }
        }, name);
        thread.start();
        return thread;
    }

    private static void nested() {
        Work.sink = outer(100_000) + fold(100_000, x -> Work.mix(x) + 1);
    }

    private static long outer(int rounds) {
        long x = 1;
        for (int i = 0; i < rounds; i++) {
            x = middle(x);
        }
        return x;
    }

    private static long middle(long x) {
        return inner(x) + 1;
    }

    private static long inner(long x) {
        return Work.mix(x);
    }

    private static long fold(int rounds, LongUnaryOperator step) {
        long x = 1;
        for (int i = 0; i < rounds; i++) {
            x = step.applyAsLong(x);
        }
        return x;
    }

    private static long recurse(int depth, long x) {
        if (depth > 1) {
            return recurse(depth - 1, x + 1) + 1;
        }
        for (int i = 0; i < 200_000; i++) {
            x = Work.mix(x);
        }
        return x;
    }

    private static void inLibrary() {
        Work.sink = Native.spin(200_000) + Native.hash(200_000) + Native.recurse(6, 200_000);
    }

    private static void inLibc() {
        Work.sink = Native.sort(2_000) + Native.copy(1 << 16, 50);
    }

    private static void calledFromNative() {
        Work.sink = fold(100_000, Work::mix);
    }
}
