package programs;

/**
 * Many Java threads that each live about a millisecond, WIDTH at a time: {@code ShortThreads [SECONDS [WIDTH
 * [ROUNDS]]]}. Prints the number of threads.
 */
public final class ShortThreads {
    private ShortThreads() {}

    public static void main(String[] args) throws InterruptedException {
        Clock clock = new Clock(args, 5);
        int width = args.length > 1 ? Integer.parseInt(args[1]) : 4;
        int rounds = args.length > 2 ? Integer.parseInt(args[2]) : 1_000_000;
        long threads = 0;
        while (clock.isRunning()) {
            Thread[] batch = new Thread[width];
            for (int i = 0; i < width; i++) {
                batch[i] = new Thread(() -> Work.sink = burn(rounds), "short-" + threads++);
                batch[i].start();
            }
            for (Thread thread : batch) {
                thread.join();
            }
        }
        System.out.println("threads=" + threads);
    }

    private static long burn(int rounds) {
        long x = rounds;
        for (int i = 0; i < rounds; i++) {
            x = Work.mix(x);
        }
        return x;
    }
}
