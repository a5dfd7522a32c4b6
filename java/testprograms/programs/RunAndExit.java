package programs;

/**
 * Prints its process id and the system property "kept", burns some CPU time, and ends with an exit code:
 * {@code RunAndExit [CODE [SECONDS]]}. It burns for that many seconds or longer.
 */
public final class RunAndExit {
    private static final int LEAST = 300;

    private RunAndExit() {}

    public static void main(String[] args) {
        String[] seconds = args.length > 1 ? new String[] {args[1]} : new String[0];
        Clock clock = new Clock(seconds, 0);
        System.out.println("pid " + ProcessHandle.current().pid());
        System.out.println("kept " + System.getProperty("kept"));
        for (int i = 0; i < LEAST || clock.isRunning(); i++) {
            Work.sink = burn(1_000_000);
        }
        System.exit(args.length > 0 ? Integer.parseInt(args[0]) : 0);
    }

    private static long burn(int rounds) {
        long x = rounds;
        for (int i = 0; i < rounds; i++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
        }
        return x;
    }
}
