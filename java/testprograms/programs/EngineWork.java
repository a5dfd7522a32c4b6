package programs;

import com.sun.management.OperatingSystemMXBean;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Field;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A fixed amount of work of one kind that an engine measures: {@code EngineWork wall
 * THREADS|alloc|lock|nativemem}. Prints the CPU time of the process and the wall time of the work, without
 * warm-up and the VM's start.
 */
public final class EngineWork {
    private static final int WALL_NS = 3_000_000;
    private static final ReentrantLock LOCK = new ReentrantLock();
    private static final Object MONITOR = new Object();

    private static volatile Object sink;

    private EngineWork() {}

    public static void main(String[] args) throws Exception {
        Runnable work;
        switch (args[0]) {
            case "wall":
                for (int i = 0; i < Integer.parseInt(args[1]); i++) {
                    // One thread in a hundred wakes up now and then, like the threads of a pool.
                    long pause = i % 100 == 0 ? WALL_NS : Long.MAX_VALUE;
                    daemon(() -> park(pause));
                }
                work = () -> burn(300_000_000);
                break;
            case "alloc":
                work = EngineWork::allocate;
                break;
            case "lock":
                work = EngineWork::contend;
                break;
            case "nativemem":
                work = EngineWork::allocateOutside;
                break;
            default:
                throw new IllegalArgumentException(args[0]);
        }
        work.run();
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long cpu = system.getProcessCpuTime();
        long wall = System.nanoTime();
        for (int i = 0; i < 3; i++) {
            work.run();
        }
        wall = System.nanoTime() - wall;
        cpu = system.getProcessCpuTime() - cpu;
        System.out.println("cpu_ns=" + cpu + " wall_ns=" + wall);
    }

    private static void daemon(Runnable task) {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        thread.start();
    }

    private static void park(long pause) {
        while (true) {
            LockSupport.parkNanos(pause);
        }
    }

    private static void burn(int rounds) {
        long x = 1;
        for (int i = 0; i < rounds; i++) {
            x = Work.mix(x);
        }
        Work.sink = x;
    }

    private static void allocate() {
        for (int i = 0; i < 10_000_000; i++) {
            sink = new byte[1_000];
        }
    }

    private static void contend() {
        Thread[] threads = new Thread[2];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(EngineWork::takeTurns);
            threads[i].start();
        }
        for (Thread thread : threads) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    private static void takeTurns() {
        for (int i = 0; i < 20_000; i++) {
            synchronized (MONITOR) {
                burn(2_000);
            }
            LOCK.lock();
            try {
                burn(2_000);
            } finally {
                LOCK.unlock();
            }
        }
    }

    /** The class is reached by its name, since compilers warn of it. */
    private static void allocateOutside() {
        try {
            Class<?> type = Class.forName("sun.misc.Unsafe");
            Field field = type.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            Object unsafe = field.get(null);
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            MethodType allocates = MethodType.methodType(long.class, long.class);
            MethodType frees = MethodType.methodType(void.class, long.class);
            MethodHandle allocate = lookup.findVirtual(type, "allocateMemory", allocates).bindTo(unsafe);
            MethodHandle free = lookup.findVirtual(type, "freeMemory", frees).bindTo(unsafe);
            for (int i = 0; i < 10_000_000; i++) {
                free.invokeExact((long) allocate.invokeExact(1_000L));
            }
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }
}
