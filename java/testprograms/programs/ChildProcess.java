package programs;

import java.io.IOException;

/**
 * Burns for a while, then runs a shell command, and burns until that has ended: {@code ChildProcess SECONDS
 * COMMAND}. The command's output becomes the program's. Ends with the command's exit code.
 */
public final class ChildProcess {
    private ChildProcess() {}

    public static void main(String[] args) throws IOException, InterruptedException {
        burn(new Clock(args, 1));
        Process child = new ProcessBuilder("/bin/sh", "-c", args[1]).inheritIO().start();
        burn(new Clock(args, 1));
        System.exit(child.waitFor());
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
