package programs;

/** Burns CPU time in two overloads of one method and in one other method: {@code Overloads [SECONDS]}. */
public final class Overloads {
    private static final int ROUNDS = 200_000;

    private Overloads() {}

    public static void main(String[] args) {
        Clock clock = new Clock(args, 2);
        long x = 1;
        while (clock.isRunning()) {
            x = burn((int) x);
            x = burn(x);
            x = alone(x);
        }
        Work.sink = x;
    }

    private static long burn(int seed) {
        long x = seed;
        for (int i = 0; i < ROUNDS; i++) {
            x = Work.mix(x);
        }
        return x;
    }

    private static long burn(long seed) {
        long x = seed;
        for (int i = 0; i < ROUNDS; i++) {
            x = Work.mix(x);
        }
        return x;
    }

    private static long alone(long seed) {
        long x = seed;
        for (int i = 0; i < ROUNDS; i++) {
            x = Work.mix(x);
        }
        return x;
    }
}
