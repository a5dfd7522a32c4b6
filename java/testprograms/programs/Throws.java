package programs;

/**
 * Throws known numbers of exceptions at known places: {@code Throws [virtual|ROUNDS]}. Each line is {@code
 * METHOD CLASS TIMES}. There is one exception in each of 30,000 or ROUNDS rounds, and another in each third.
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
        boolean virtual = args.length > 0 && args[0].equals("virtual");
        int rounds = args.length > 0 && !virtual ? Integer.parseInt(args[0]) : 30_000;
        Threads.start(virtual, () -> all(rounds)).join();
    }

    private static void all(int rounds) {
        int thirds = (rounds + 2) / 3;
        for (int i = 0; i < rounds; i++) {
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
        System.out.println("explicit java.lang.IllegalStateException " + rounds);
        System.out.println("bare programs.Throws$Bare " + thirds);
        if (caught != rounds + thirds) {
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
