package programs;

/**
 * A thread that renames itself half way: {@code Renamed [SECONDS]}. Prints its id. Its name is first-name,
 * then second-name.
 */
public final class Renamed {
    private Renamed() {}

    public static void main(String[] args) throws InterruptedException {
        double seconds = args.length > 0 ? Double.parseDouble(args[0]) : 4;
        String[] half = {Double.toString(seconds / 2)};
        Thread thread = new Thread(() -> {
            burn(new Clock(half, 0));
            Thread.currentThread().setName("second-name");
            burn(new Clock(half, 0));
        }, "first-name");
        System.out.println("id=" + thread.getId());
        thread.start();
        thread.join();
    }

    private static void burn(Clock clock) {
        long x = 1;
        while (clock.isRunning()) {
            for (int i = 0; i < 100_000; i++) {
                x = Work.mix(x);
            }
        }
        Work.sink = x;
    }
}
