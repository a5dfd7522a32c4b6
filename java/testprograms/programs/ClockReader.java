package programs;

/** Reads the clock all the time, by the function in the vDSO: {@code ClockReader [SECONDS]}. */
public final class ClockReader {
    private ClockReader() {}

    public static void main(String[] args) {
        Clock clock = new Clock(args, 5);
        while (clock.isRunning()) {
            Work.sink++;
        }
    }
}
