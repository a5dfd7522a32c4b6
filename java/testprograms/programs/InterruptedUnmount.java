package programs;

import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.spi.AbstractInterruptibleChannel;
import java.util.Arrays;
import java.util.List;

/**
 * A thread that waits for a monitor while it interrupts a virtual thread. The virtual thread is unmounting
 * from its carrier, and has to wait until the interruption is over: {@code interrupt} holds {@code
 * VirtualThread.interruptLock} while it closes the channel, and {@code unmount} takes that lock. The monitor
 * is released in any case.
 *
 * <p>With {@code exit} the thread ends the VM instead of waiting. With {@code context} another virtual thread
 * has had a context before. With {@code stop} yet another thread stops the profiler while the virtual thread
 * is unmounting.
 */
public final class InterruptedUnmount {
    private static final long HELD_MS = 1000;
    /** Time after which the virtual thread waits for the lock. */
    private static final long ON_ITS_WAY_MS = 300;

    private static final class Door {}

    private static final Door DOOR = new Door();
    private static volatile boolean exits;
    private static volatile boolean stops;
    private static volatile boolean isHeld;
    private static volatile boolean isBlocked;
    private static volatile boolean isInterrupted;

    private InterruptedUnmount() {}

    private static final class Channel extends AbstractInterruptibleChannel {
        void block() {
            begin();
            try {
                isBlocked = true;
                while (!isInterrupted) {
                    Thread.onSpinWait();
                }
                Thread.yield();
            } finally {
                try {
                    end(true);
                } catch (ClosedByInterruptException e) {
                    System.out.println("closed");
                } catch (IOException e) {
                    throw new IllegalStateException(e);
                }
            }
        }

        @Override
        protected void implCloseChannel() {
            isInterrupted = true;
            sleep(ON_ITS_WAY_MS);
            if (stops) {
                new Thread(() -> Otlpprof.getInstance().stop(), "stopper").start();
                sleep(ON_ITS_WAY_MS);
            }
            if (exits) {
                System.exit(0);
            }
            synchronized (DOOR) {
                System.out.println("entered");
            }
        }
    }

    public static void main(String[] args) throws Exception {
        List<String> wanted = Arrays.asList(args);
        exits = wanted.contains("exit");
        stops = wanted.contains("stop");
        if (wanted.contains("context")) {
            ContextSetter context = new ContextSetter(Otlpprof.getInstance(), List.of("worker"));
            Threads.startVirtual(() -> context.setTraceContext(1, 2, 3, 1)).join();
        }
        new Thread(InterruptedUnmount::hold, "holder").start();
        Channel channel = new Channel();
        Thread blocked = Threads.startVirtual(channel::block);
        while (!isHeld || !isBlocked) {
            Thread.onSpinWait();
        }
        blocked.interrupt();
        blocked.join();
    }

    private static void hold() {
        synchronized (DOOR) {
            isHeld = true;
            sleep(HELD_MS);
        }
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
