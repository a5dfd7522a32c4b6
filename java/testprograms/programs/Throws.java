package programs;

/**
 * Throws known numbers of exceptions at known places: {@code Throws [virtual]}. Each line is {@code
 * METHOD CLASS TIMES}.
 */
public final class Throws {
    private Throws() {}

    /** An exception without a stack trace. */
    private static final class Bare extends RuntimeException {
        private static final long serialVersionUID = 1;

        Bare() {
            super("bare", null, false, false);
        }
    }

    private static int caught;

    public static void main(String[] args) throws Exception {
        Threads.start(args.length > 0, Throws::all).join();
    }

    private static void all() {
        for (int i = 0; i < 30_000; i++) {
            try {
                explicit(i);
            } catch (IllegalStateException e) {
                caught++;
            }
            if (i % 3 == 0) {
                try {
                    bare();
                } catch (Bare e) {
                    caught++;
                }
            }
        }
        System.out.println("explicit java.lang.IllegalStateException 30000");
        System.out.println("bare programs.Throws$Bare 10000");
        if (caught != 40_000) {
            throw new IllegalStateException(caught + " were caught");
        }
    }

    private static void explicit(int number) {
        throw new IllegalStateException("number " + number);
    }

    private static void bare() {
        throw new Bare();
    }
}
