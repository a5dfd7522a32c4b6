package programs;

/** How long a program still runs: the whole seconds (or fractions) that its first argument gives. */
final class Clock {
    private final long endNanos;

    /** Starts now; {@code defaultSeconds} where the argument is missing. */
    Clock(String[] args, double defaultSeconds) {
        double seconds = args.length > 0 ? Double.parseDouble(args[0]) : defaultSeconds;
        endNanos = System.nanoTime() + (long) (seconds * 1e9);
    }

    boolean isRunning() {
        return System.nanoTime() < endNanos;
    }
}
