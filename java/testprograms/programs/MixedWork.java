package programs;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.locks.ReentrantLock;

/** Causes events of every engine: {@code MixedWork SECONDS}. Prints the number of exceptions thrown. */
public final class MixedWork {
    private static final Object MONITOR = new Object();
    private static final Object BELL = new Object();
    private static final ReentrantLock LOCK = new ReentrantLock();
    private static final BlockingQueue<Integer> QUEUE = new ArrayBlockingQueue<>(16);

    private static final List<byte[]> KEPT = new ArrayList<>();

    private static final int THROWN_IN_A_ROUND = 10;

    private static volatile Object sink;
    /** Written by one thread only. */
    private static volatile long thrown;

    private MixedWork() {}

    private interface Task {
        void run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        Clock clock = new Clock(args, 3);
        List<Thread> threads = new ArrayList<>();
        Task[] tasks = {
            MixedWork::burn,
            MixedWork::allocate,
            MixedWork::fail,
            MixedWork::contend,
            MixedWork::contend,
            MixedWork::await,
            () -> succeed(false),
            () -> succeed(Threads.canBeVirtual()),
            () -> QUEUE.put(1),
            QUEUE::take,
        };
        int ending = tasks.length - 2;
        for (int i = 0; i < tasks.length; i++) {
            int number = i;
            Thread thread = new Thread(() -> {
                while (clock.isRunning()) {
                    try {
                        tasks[number].run();
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                }
            }, "mixed-" + i);
            // The last producer or consumer may be left with a full or an empty queue.
            thread.setDaemon(i >= ending);
            thread.start();
            threads.add(thread);
        }
        for (int i = 0; i < 512; i++) {
            KEPT.add(new byte[16 << 10]);
        }
        // An object counts as live once it has survived a collection.
        System.gc();
        System.gc();
        for (Thread thread : threads.subList(0, ending)) {
            thread.join();
        }
        System.out.println(thrown);
    }

    private static void burn() {
        long x = 1;
        for (int i = 0; i < 100_000; i++) {
            x = Work.mix(x);
        }
        Work.sink = x;
    }

    private static void allocate() throws InterruptedException {
        for (int i = 0; i < 1_000; i++) {
            sink = new byte[1_024];
        }
        sink = ByteBuffer.allocateDirect(256 << 10);
        Thread.sleep(1);
    }

    private static void fail() throws InterruptedException {
        for (int i = 0; i < THROWN_IN_A_ROUND; i++) {
            try {
                throw new IllegalArgumentException("thrown to be counted");
            } catch (IllegalArgumentException e) {
                sink = e;
            }
        }
        thrown += THROWN_IN_A_ROUND;
        Thread.sleep(1);
    }

    private static void contend() throws InterruptedException {
        synchronized (MONITOR) {
            Thread.sleep(1);
        }
        LOCK.lock();
        try {
            Thread.sleep(1);
        } finally {
            LOCK.unlock();
        }
    }

    /** Runs short-lived threads one after the other, as a pool does that does not keep its threads. */
    private static void succeed(boolean virtual) throws InterruptedException {
        Threads.start(virtual, () -> {
            try {
                burn();
                allocate();
                contend();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }).join();
    }

    private static void await() throws InterruptedException {
        synchronized (BELL) {
            BELL.wait(2);
        }
    }
}
