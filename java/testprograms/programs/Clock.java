package programs;

/**
 * Limits a program's time to the number of seconds (with or without a fraction) in its first argument. If
 * {@code cpu} follows the number, these are seconds of the process's CPU time: a program on a busy machine
 * uses as many of them as on an idle one.
 */
final class Clock {
    private static final String CPU = "cpu";

    private final boolean isCpu;
    private final long endNanos;

    /** Starts now. {@code defaultSeconds} is used if the argument is missing. */
    Clock(String[] args, double defaultSeconds) {
        String argument = args.length > 0 ? args[0] : Double.toString(defaultSeconds);
        isCpu = argument.endsWith(CPU);
        int digits = argument.length() - (isCpu ? CPU.length() : 0);
        endNanos = now() + (long) (Double.parseDouble(argument.substring(0, digits)) * 1e9);
    }

    boolean isRunning() {
        return now() < endNanos;
    }

    private long now() {
        return isCpu ? Native.processCpuNanos() : System.nanoTime();
    }
}
