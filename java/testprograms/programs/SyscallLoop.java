package programs;

/** One thread that spends nearly all of its time in the kernel: {@code SyscallLoop [SECONDS]}. */
public final class SyscallLoop {
    private SyscallLoop() {}

    public static void main(String[] args) {
        Clock clock = new Clock(args, 5);
        while (clock.isRunning()) {
            if (Native.systemCalls(10_000) != 10_000) {
                throw new IllegalStateException("/dev/zero cannot be read");
            }
        }
    }
}
