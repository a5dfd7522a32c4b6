package programs;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Starts platform threads and virtual threads, for programs that are compiled for JDKs without virtual
 * threads.
 */
final class Threads {
    /** {@code Thread.startVirtualThread(Runnable)}, which exists from 21 on. */
    private static final Method START_VIRTUAL = startVirtualThread();

    private Threads() {}

    static boolean canBeVirtual() {
        return START_VIRTUAL != null;
    }

    /** Starts a virtual thread or a platform thread. */
    static Thread start(boolean virtual, Runnable task) {
        return virtual ? startVirtual(task) : startPlatform(new Thread(task));
    }

    /** Starts a virtual thread, which has no name, or a platform thread with this name. */
    static Thread start(boolean virtual, String name, Runnable task) {
        return virtual ? startVirtual(task) : startPlatform(new Thread(task, name));
    }

    static Thread startVirtual(Runnable task) {
        try {
            return (Thread) START_VIRTUAL.invoke(null, task);
        } catch (IllegalAccessException | InvocationTargetException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Thread startPlatform(Thread thread) {
        thread.start();
        return thread;
    }

    private static Method startVirtualThread() {
        try {
            return Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException e) {
            return null;
        }
    }

    /** The kernel's id of the calling thread. {@code /proc/thread-self} links to {@code PID/task/TID}. */
    static long kernelId() {
        try {
            Path self = Files.readSymbolicLink(Path.of("/proc/thread-self"));
            return Long.parseLong(self.getFileName().toString());
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }
}
