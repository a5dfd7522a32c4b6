package programs;

/** One thread that spends all of its time in user mode: {@code UserLoop [SECONDS]}. */
public final class UserLoop {
    private UserLoop() {}

    public static void main(String[] args) {
        Clock clock = new Clock(args, 5);
        while (clock.isRunning()) {
            Work.sink = burn(1_000_000);
        }
    }

    private static long burn(int rounds) {
        long x = rounds;
        for (int i = 0; i < rounds; i++) {
            x = Work.mix(x);
        }
        return x;
    }
}
