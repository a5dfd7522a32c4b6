package programs;

/**
 * The functions of libddproftest. The system property {@code ddproftest} names the build of the library to
 * load.
 */
final class Native {
    static {
        String library = System.getProperty("ddproftest");
        if (library == null) {
            throw new IllegalStateException("say -Dddproftest=PATH of libddproftest.so");
        }
        System.load(library);
    }

    private Native() {}

    /** Burns in {@code ddprof_spin}. */
    static native long spin(long rounds);

    /** Burns in a static function below {@code ddprof_hash}. */
    static native long hash(long rounds);

    /** Burns below {@code depth} frames of {@code ddprof_recurse}. */
    static native long recurse(int depth, long rounds);

    /** Burns in libc's qsort and the static comparison that it calls. */
    static native long sort(int elements);

    /** Burns in libc's memcpy. */
    static native long copy(int bytes, int times);

    /** Burns in the kernel by reading /dev/zero. Returns the number of successful reads. */
    static native long systemCalls(int calls);

    /** Burns in a signal handler. Returns an errno. */
    static native int signalled(long rounds);

    /** Burns on pthreads that are never attached to the JVM, all at the same time. Returns an errno. */
    static native int pthreads(int threads, int milliseconds);

    /** Burns on pthreads that are never attached to the JVM, one after the other. Returns an errno. */
    static native int shortPthreads(int threads, long rounds);

    /**
     * Burns on a pthread that is never attached to the JVM, under one name and then under another. Returns an
     * errno.
     */
    static native int renamedPthread(int milliseconds);

    /** Burns in {@code ddprof_undescribed}, whose caller no walker of native frames can find. */
    static native void undescribed(long rounds);

    /** Burns like {@link #undescribed} on a pthread that is never attached to the JVM. Returns an errno. */
    static native int undescribedPthread(long rounds);

    /**
     * Loads a library, burns in its function {@code ddprof_plugin_a} and unloads it. Returns the function's
     * address, or 0.
     */
    static native long pluginA(String library, long rounds);

    /** Does the same as {@link #pluginA} with {@code ddprof_plugin_b}. */
    static native long pluginB(String library, long rounds);

    /**
     * Calls {@code uint64_t function(uint64_t argument)} of a library, which stays loaded. Returns -1 if it
     * is not found.
     */
    static native long call(String library, String function, long argument);

    /** Runs the task from native code. */
    static native void upcall(Runnable task);

    /**
     * Runs the task with an alternate signal stack of {@code bytes} bytes. Returns the number of bytes by
     * which the stack was overrun, or a negative errno.
     */
    static native long alternateStack(int bytes, Runnable task);

    /**
     * Burns on a pthread with a stack of {@code bytes} bytes that is never attached. Returns like {@link
     * #alternateStack}.
     */
    static native long smallThread(int bytes, long rounds);

    /**
     * Burns on a stack of {@code bytes} bytes that belongs to no thread. Returns like {@link
     * #alternateStack}.
     */
    static native long fiber(int bytes, long rounds);

    /** Calls {@code Agent_OnAttach} of an agent's library as the JVM would. Returns its result. */
    static native int driveAgent(String library, String options);

    /** The number of bytes that are allocated from the C library. */
    static native long allocatedBytes();

    /** Publishes an encoded process context to other processes. Returns whether it is published. */
    static native boolean publish(byte[] payload);

    /** The CPU time of the process, in nanoseconds. */
    static native long processCpuNanos();
}
