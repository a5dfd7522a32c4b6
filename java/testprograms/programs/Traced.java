package programs;

import java.util.function.IntSupplier;

/**
 * Calls methods that measure their own duration: {@code Traced [virtual]}. Each line is {@code METHOD CALLS
 * LEAST MOST}: the number of calls, each of which takes some milliseconds, and the nanoseconds of all calls
 * together, measured inside of the calls (LEAST) and around them (MOST).
 */
public final class Traced {
    private Traced(int times) {
        this(pause(times), "made");
        Traced.made += times;
        if (times < 0) {
            throw new IllegalStateException("never");
        }
    }

    private Traced(long inside, String made) {
        Traced.inside += inside;
    }

    /** A constructor that makes other objects before it calls the other constructor. */
    private Traced(String text) {
        this(pause(text.isEmpty() ? new int[0].length : new StringBuilder(text).length() % 2 + 5), text);
    }

    private static final class Expected extends RuntimeException {
        private static final long serialVersionUID = 1;
    }

    private static long made;
    /** The time that the current call has measured, in nanoseconds. */
    private static long inside;

    private static long least;
    private static long most;
    private static int caught;

    public static void main(String[] args) throws Exception {
        Threads.start(args.length > 0, Traced::all).join();
    }

    private static void all() {
        measure("plain", 8, () -> plain());
        measure("branches", 8, () -> branches(8, 3L, "x", 2.5));
        measure("overloaded", 8, () -> (int) overloaded(1L, 2.0) + overloaded(new int[][] {{1}}, "two"));
        measure("thrower", 8, () -> {
            try {
                return thrower(true);
            } catch (Expected e) {
                caught++;
                return 0;
            }
        });
        measure("recursive", 4, () -> recursive(3));
        measure("guarded", 8, () -> guarded());
        measure("instance", 8, () -> new Nested().instance(1, 2));
        measure("<init>", 8, () -> new Traced(5).hashCode() + new Traced("five").hashCode());
        measure("Lambda", 8, () -> Later.later());
        for (int i = 0; i < 200_000; i++) {
            made += fast(i) + switched(i);
        }
        for (int i = 0; i < 100; i++) {
            try {
                thrower(false);
            } catch (Expected e) {
                caught++;
            }
        }
        if (caught != 108) {
            throw new IllegalStateException(caught + " were caught");
        }
        if (made != 8 * 5 + 200_000L * 199_999 + 200_000L / 5 * (100 + 107 + 300 + 300 + 300)) {
            throw new IllegalStateException("the methods do not what they did: " + made);
        }
    }

    /**
     * Calls a task. Its calls add their durations to {@code inside}, and take a little longer measured from
     * outside.
     */
    private static void measure(String method, int times, IntSupplier task) {
        least = 0;
        most = 0;
        for (int i = 0; i < times; i++) {
            inside = 0;
            long start = System.nanoTime();
            task.getAsInt();
            most += System.nanoTime() - start;
            least += inside;
        }
        System.out.println(method + " " + times + " " + least + " " + most);
    }

    /** Waits for {@code millis} milliseconds, and returns how long that took in nanoseconds. */
    private static long pause(int millis) {
        long start = System.nanoTime();
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        return System.nanoTime() - start;
    }

    private static int plain() {
        inside += pause(5);
        return 1; // the return of plain
    }

    /** A method with jumps, and variables of all kinds that are live for a part of it. */
    private static int branches(int times, long factor, String text, double share) {
        int sum = 0;
        for (int i = 0; i < times; i++) {
            long product = i * factor;
            if (product % 2 == 0) {
                Object copy = text + product;
                sum += copy.hashCode();
            } else {
                double part = product * share;
                sum -= (int) part;
            }
            inside += pause(1);
        }
        return sum > 0 ? sum : -sum;
    }

    private static double overloaded(long a, double b) {
        inside += pause(4);
        return a + b;
    }

    private static int overloaded(int[][] numbers, String text) {
        inside += pause(4);
        return numbers.length + text.length();
    }

    private static int thrower(boolean isSlow) {
        if (isSlow) {
            inside += pause(5);
        }
        throw new Expected();
    }

    /** Each call takes a little longer than the calls below it. */
    private static int recursive(int depth) {
        long start = System.nanoTime();
        pause(4);
        int result = depth == 0 ? 0 : recursive(depth - 1) + 1;
        inside += System.nanoTime() - start;
        return result;
    }

    private static synchronized int guarded() {
        try {
            inside += pause(5);
            synchronized (Nested.class) {
                return caught;
            }
        } finally {
            inside += pause(1);
        }
    }

    private static int fast(int number) {
        return number * 2;
    }

    private static int switched(int number) {
        switch (number % 5) {
            case 0:
                return 100;
            case 1:
                return 107;
            default:
                switch (String.valueOf(number % 5)) {
                    case "2":
                    case "3":
                        return 300;
                    case "a string that makes for a lookupswitch":
                        return -1;
                    default:
                        return 300;
                }
        }
    }

    private static final class Nested {
        int instance(int a, int b) {
            inside += pause(5);
            return a + b;
        }
    }

    /** A class that is loaded at its first use. */
    private static final class Later {
        static int later() {
            inside += pause(5);
            return 1;
        }
    }
}
