package programs;

/** The functions of libddproftest; the system property {@code ddproftest} says which build of it to load. */
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

    /** Burns in the kernel, reading /dev/zero; returns how many reads were answered. */
    static native long systemCalls(int calls);

    /** Burns in a signal's handler; returns an errno. */
    static native int signalled(long rounds);

    /** Burns on pthreads that are never attached to the JVM, all at once; returns an errno. */
    static native int pthreads(int threads, int milliseconds);

    /** Burns on never-attached pthreads, one after the other; returns an errno. */
    static native int shortPthreads(int threads, long rounds);

    /** Burns on a never-attached pthread, under one name and then under another; returns an errno. */
    static native int renamedPthread(int milliseconds);

    /** Burns in {@code ddprof_undescribed}, whose caller no walker of native frames can find. */
    static native void undescribed(long rounds);

    /** The same on a pthread that is never attached to the JVM; returns an errno. */
    static native int undescribedPthread(long rounds);

    /** Loads a library, burns in its function {@code ddprof_plugin_a} and unloads it; returns where that was, or 0. */
    static native long pluginA(String library, long rounds);

    /** The same with {@code ddprof_plugin_b}. */
    static native long pluginB(String library, long rounds);

    /** Calls {@code uint64_t function(uint64_t argument)} of a library, which stays loaded; -1 if it is not to be had. */
    static native long call(String library, String function, long argument);

    /** Runs the task from native code. */
    static native void upcall(Runnable task);

    /**
     * Runs the task with an alternate signal stack of so many bytes; returns by how many that was overrun, or an errno below
     * zero.
     */
    static native long alternateStack(int bytes, Runnable task);

    /** Burns on a pthread with a stack of so many bytes, which is never attached to the JVM; returns the same. */
    static native long smallThread(int bytes, long rounds);

    /** Burns on a stack of so many bytes that belongs to no thread; returns the same. */
    static native long fiber(int bytes, long rounds);

    /** Calls {@code Agent_OnAttach} of an agent's library, as the JVM would; returns what it returns. */
    static native int driveAgent(String library, String options);

    /** The bytes that the C library's allocator has given out. */
    static native long allocatedBytes();

    /** Publishes a process context, an encoded message, to other processes; whether it is published. */
    static native boolean publish(byte[] payload);

    /** The CPU time that the process has used, in nanoseconds. */
    static native long processCpuNanos();
}
