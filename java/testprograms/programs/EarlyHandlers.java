package programs;

/**
 * Installs handlers of signals, by the JVM, before the program is profiled: {@code EarlyHandlers SECONDS
 * NAME...}. Prints {@code ready} when they are installed.
 */
public final class EarlyHandlers {
    static volatile Object allocated;

    private EarlyHandlers() {}

    public static void main(String[] args) throws Exception {
        Clock clock = new Clock(args, 100);
        LateHandlers.install(java.util.Arrays.copyOfRange(args, 1, args.length));
        System.out.println("ready");
        while (clock.isRunning()) {
            LateHandlers.work(10);
            for (int i = 0; i < 1_000; i++) {
                allocated = new byte[1_000];
            }
        }
    }
}
