package programs;

import java.util.stream.IntStream;

/**
 * Work where a signal handler has little room: {@code SmallStacks SECONDS KIND BYTES...}. The kinds are
 * {@code alternate} (Java code, shallow and deep, on a thread with an alternate signal stack of BYTES bytes),
 * {@code thread} (a pthread with a stack of that size) and {@code fiber} (native code on a separate stack of
 * that size). A line for each size has the number of bytes by which the stack was overrun. The thread of an
 * alternate stack is called {@code small BYTES}.
 */
public final class SmallStacks {
    private static final int DEEP = 1_500;
    /** A burst of native work takes some milliseconds. */
    private static final long ROUNDS = 10_000_000;

    private SmallStacks() {}

    public static void main(String[] args) throws Exception {
        for (int i = 2; i < args.length; i++) {
            int bytes = Integer.parseInt(args[i]);
            Clock clock = new Clock(args, 1);
            long overrun = args[1].equals("alternate")
                    ? onLargeThread(clock, bytes)
                    : inNative(clock, args[1], bytes);
            System.out.println(args[1] + " " + bytes + " overrun by " + overrun);
        }
    }

    private static long inNative(Clock clock, String kind, int bytes) {
        long overrun = 0;
        while (clock.isRunning() && overrun == 0) {
            overrun = kind.equals("fiber") ? Native.fiber(bytes, ROUNDS) : Native.smallThread(bytes, ROUNDS);
        }
        return overrun;
    }

    private static long onLargeThread(Clock clock, int bytes) throws InterruptedException {
        long[] overrun = new long[1];
        Runnable task = () -> {
            for (int i = 0; clock.isRunning(); i++) {
                Work.sink += descend(i % 4 == 0 ? DEEP : i % 40);
            }
        };
        Runnable onSmallStack = () -> overrun[0] = Native.alternateStack(bytes, task);
        Thread thread = new Thread(null, onSmallStack, "small " + bytes, 16 << 20);
        thread.start();
        thread.join();
        return overrun[0];
    }

    private static long descend(int depth) {
        return depth == 0 ? work() : descend(depth - 1) + 1;
    }

    /** Compiled and inlined code, and native code of the JDK. */
    private static long work() {
        long sum = 0;
        for (int i = 0; i < 20; i++) {
            sum += IntStream.range(0, 50)
                    .mapToObj(Integer::toString)
                    .filter(text -> text.length() > 1)
                    .count();
            sum = Work.mix(sum);
        }
        byte[] bytes = new byte[2_000];
        System.arraycopy(bytes, 0, bytes, 100, 1_000);
        return sum + bytes[7];
    }
}
