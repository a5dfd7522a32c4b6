package programs;

/**
 * Exceptions whose numbers of constructions and throws differ, at known places: {@code MadeAndThrown
 * [virtual]}. Each line is {@code METHOD CLASS MADE THROWN}. METHOD constructs the exception, or throws it if
 * another method constructs it.
 */
public final class MadeAndThrown {
    private static final int TIMES = 5_000;

    private static volatile Throwable sink;

    private static int caught;

    private MadeAndThrown() {}

    /** Constructed once and thrown many times. */
    private static final class Kept extends RuntimeException {
        private static final long serialVersionUID = 1;

        static final Kept ONE = new Kept();
    }

    /** Thrown again by the method that catches it. */
    private static final class Again extends Exception {
        private static final long serialVersionUID = 1;
    }

    /** Constructed only to inspect its stack trace, and never thrown. */
    private static final class Looked extends Exception {
        private static final long serialVersionUID = 1;
    }

    /** The constructor fails, by an exception whose own constructors call each other. */
    private static final class Failing {
        Failing() {
            throw new Constructed("abc");
        }
    }

    /** An exception whose constructor makes another. */
    private static final class Outer extends RuntimeException {
        private static final long serialVersionUID = 1;

        Outer() {
            super(new Inner());
        }
    }

    private static final class Inner extends Exception {
        private static final long serialVersionUID = 1;
    }

    public static void main(String[] args) throws Exception {
        Threads.start(args.length > 0, MadeAndThrown::all).join();
    }

    private static void all() {
        attempt(MadeAndThrown::throwKept);
        attempt(MadeAndThrown::throwAgain);
        for (int i = 0; i < TIMES; i++) {
            look();
        }
        attempt(Failing::new);
        attempt(MadeAndThrown::nest);
        attempt(() -> divide(0));
        System.out.println("throwKept programs.MadeAndThrown$Kept 0 " + TIMES);
        System.out.println("makeAgain programs.MadeAndThrown$Again " + TIMES + " " + TIMES);
        System.out.println("throwAgain programs.MadeAndThrown$Again 0 " + TIMES);
        System.out.println("look programs.MadeAndThrown$Looked " + TIMES + " 0");
        System.out.println("<init> programs.Constructed " + TIMES + " " + TIMES);
        System.out.println("nest programs.MadeAndThrown$Outer " + TIMES + " " + TIMES);
        System.out.println("<init> programs.MadeAndThrown$Inner " + TIMES + " 0");
        System.out.println("divide java.lang.ArithmeticException " + TIMES + " " + TIMES);
        if (caught != 5 * TIMES) {
            throw new IllegalStateException(caught + " were caught");
        }
    }

    private interface Attempt {
        void run() throws Exception;
    }

    private static void attempt(Attempt attempt) {
        for (int i = 0; i < TIMES; i++) {
            try {
                attempt.run();
            } catch (Exception e) {
                sink = e;
                caught++;
            }
        }
    }

    private static void throwKept() {
        throw Kept.ONE;
    }

    private static void throwAgain() throws Again {
        try {
            makeAgain();
        } catch (Again e) {
            throw e;
        }
    }

    private static void makeAgain() throws Again {
        throw new Again();
    }

    private static void look() {
        sink = new Looked();
    }

    private static void nest() {
        throw new Outer();
    }

    private static int divide(int by) {
        return 1 / by;
    }
}
