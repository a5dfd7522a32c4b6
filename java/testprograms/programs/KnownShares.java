package programs;

/**
 * CPU time with known shares for each method: {@code KnownShares [SECONDS]}. All methods run the same loop,
 * in which each round depends on the previous one, so that a method's share of the time is its share of the
 * rounds. Its name is that share in percent.
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

    /** Does no work itself. */
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
