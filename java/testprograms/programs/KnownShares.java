package programs;

/**
 * CPU time divided among methods by construction: {@code KnownShares [SECONDS]}. All run the same loop, in which each
 * round waits for the one before, so that a method's share is its share of the rounds: what its name says, in percent.
 */
public final class KnownShares {
    private static final int UNIT = 400;

    private KnownShares() {}

    public static void main(String[] args) {
        Clock clock = new Clock(args, 5);
        long x = 1;
        while (clock.isRunning()) {
            for (int i = 0; i < 50; i++) {
                x = fortyFive(x);
                x = fiftyFive(x);
            }
        }
        Work.sink = x;
    }

    /** Nothing by itself. */
    private static long fortyFive(long x) {
        return forty(five(x));
    }

    private static long fiftyFive(long x) {
        return twentyFive(twenty(ten(x)));
    }

    private static long forty(long x) {
        for (int i = 0; i < 40 * UNIT; i++) {
            x = x * 6364136223846793005L + (x >>> 29);
        }
        return x;
    }

    private static long twentyFive(long x) {
        for (int i = 0; i < 25 * UNIT; i++) {
            x = x * 6364136223846793005L + (x >>> 29);
        }
        return x;
    }

    private static long twenty(long x) {
        for (int i = 0; i < 20 * UNIT; i++) {
            x = x * 6364136223846793005L + (x >>> 29);
        }
        return x;
    }

    private static long ten(long x) {
        for (int i = 0; i < 10 * UNIT; i++) {
            x = x * 6364136223846793005L + (x >>> 29);
        }
        return x;
    }

    private static long five(long x) {
        for (int i = 0; i < 5 * UNIT; i++) {
            x = x * 6364136223846793005L + (x >>> 29);
        }
        return x;
    }
}
