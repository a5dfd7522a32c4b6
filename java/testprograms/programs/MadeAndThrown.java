package programs;

/**
 * Exceptions that are not thrown as often as they are made, at known places: {@code MadeAndThrown [virtual]}. Each line is
 * {@code METHOD CLASS MADE THROWN}, where METHOD is the one that makes it, or throws it if those differ.
 */
public final class MadeAndThrown {
    private static final int TIMES = 5_000;

    private static volatile Throwable sink;

    private static int caught;

    private MadeAndThrown() {}

    /** Kept, and thrown whenever it is needed. */
    private static final class Kept extends RuntimeException {
        private static final long serialVersionUID = 1;

        static final Kept ONE = new Kept();
    }

    /** Thrown by whoever catches it, once more. */
    private static final class Again extends Exception {
        private static final long serialVersionUID = 1;
    }

    /** Made to look at its stack trace. */
    private static final class Looked extends Exception {
        private static final long serialVersionUID = 1;
    }

    /** A constructor that fails, by an exception whose own constructors call each other. */
    private static final class Failing {
        Failing() {
            throw new Constructed("abc");
        }
    }

    /** One that makes another in its constructor. */
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
