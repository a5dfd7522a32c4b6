package programs;

/** Limits a program's time to the number of seconds (with or without a fraction) in its first argument. */
final class Clock {
    private final long endNanos;

    /** Starts now. {@code defaultSeconds} is used if the argument is missing. */
    Clock(String[] args, double defaultSeconds) {
        double seconds = args.length > 0 ? Double.parseDouble(args[0]) : defaultSeconds;
        endNanos = System.nanoTime() + (long) (seconds * 1e9);
    }

    boolean isRunning() {
        return System.nanoTime() < endNanos;
    }
}
