package programs;

/**
 * A compiled method whose time is split 70 to 30 between two inlined callees: {@code InlineSplit [SECONDS]}.
 * Both run the same loop, with 7 and 3 rounds. The lines that burn are marked, so that tests can find their
 * numbers.
 */
public final class InlineSplit {
    private static final int UNIT = 2_000;

    private InlineSplit() {}

    public static void main(String[] args) {
        Clock clock = new Clock(args, 5);
        long x = 1;
        while (clock.isRunning()) {
            for (int i = 0; i < 50; i++) {
                x = split(x);
            }
        }
        Work.sink = x;
    }

    private static long split(long x) {
        x = seventy(x);
        x = thirty(x);
        return x;
    }

    private static long seventy(long x) {
        for (int i = 0; i < 7 * UNIT; i++) {
            x = x * 6364136223846793005L + (x >>> 29); // burns: seventy
        }
        return x;
    }

    private static long thirty(long x) {
        for (int i = 0; i < 3 * UNIT; i++) {
            x = x * 6364136223846793005L + (x >>> 29); // burns: thirty
        }
        return x;
    }
}
