package programs;

import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * Virtual threads, every second one of which has a context: {@code PublishedVirtualThreads BOARD THREADS
 * SECONDS}. The file BOARD has sixteen bytes for each thread. The first eight are the kernel's id of its
 * carrier while the thread burns, and 0 otherwise. The other eight are the number of its burns, before each
 * of which it may be mounted anew. The first half of a thread's trace id is its number plus one, the second
 * half counts the thread's settings of its context, and the span id follows from both. Needs Java 21, which
 * is reached by reflection.
 */
public final class PublishedVirtualThreads {
    private static final ContextSetter CONTEXT = new ContextSetter(Otlpprof.getInstance(), List.of("worker"));

    private PublishedVirtualThreads() {}

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[1]);
        Clock clock = new Clock(new String[] {args[2]}, 0);
        LongBuffer board = map(Path.of(args[0]), threads);
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        for (int i = 0; i < threads; i++) {
            int number = i;
            start.invoke(null, (Runnable) () -> run(clock, board, number));
        }
        Thread.sleep(300);
        System.out.println("running");
        while (clock.isRunning()) {
            Thread.sleep(100);
        }
    }

    private static LongBuffer map(Path file, int threads) throws IOException {
        try (FileChannel channel = FileChannel.open(
                file, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            return channel.map(FileChannel.MapMode.READ_WRITE, 0, 16L * threads)
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .asLongBuffer();
        }
    }

    private static void run(Clock clock, LongBuffer board, int number) {
        long set = 0;
        String worker = "v" + number;
        for (int turn = 0; clock.isRunning(); turn++) {
            long carrier = Threads.kernelId();
            if (number % 2 == 0 && turn % 8 == 0) {
                set++;
                long id = number + 1;
                CONTEXT.setTraceContext(id, set, id << 32 ^ set * 0x9e3779b97f4a7c15L, 1);
                CONTEXT.setAttribute(0, worker);
            }
            board.put(2 * number + 1, turn);
            board.put(2 * number, carrier);
            burn(turn);
            board.put(2 * number, 0);
            if (turn % 3 == 0) {
                LockSupport.parkNanos(50_000);
            } else {
                Thread.yield();
            }
        }
    }

    private static void burn(int seed) {
        long x = seed;
        for (int i = 0; i < 200_000; i++) {
            x = Work.mix(x);
        }
        Work.sink = x;
    }
}
