package io.otlpprof;

import java.nio.ByteBuffer;

/** What the agent's library implements. Linked when the agent is in the process, however it was loaded. */
final class Natives {
    /** Changes whenever these methods do, or the layout of what they give. The library's is in {@code agent::java_api}. */
    static final int ABI = 7;

    private Natives() {}

    /** The library's version. */
    static native String version0();

    /** The library's {@link #ABI}. */
    static native int abi0();

    /** Does what the JVM does when it loads the agent with these options. Returns whether the JVM may go on. */
    static native boolean load0(String options);

    /** Starts a session; an agent string as in {@code -agentpath}. Returns what is wrong, or null. */
    static native String start0(String options);

    /** Whether there was a session to stop. */
    static native boolean stop0();

    /** Whether there is a session to flush. */
    static native boolean flush0();

    static native String status0();

    /** Whether the calling thread could be registered, or taken from the register. */
    static native boolean setRegistered0(boolean isRegistered);

    /** Kinds of {@link #event0}: what is text of them, before the thread's name. The first text is its frame. */
    static final int TRACE_ROOT = 0; // endpoint, operation

    static final int QUEUE = 1; // scheduler, task, queue's type, origin
    static final int DURATION = 2; // name

    /**
     * Records an event.
     *
     * @param texts those of its kind, and the thread's name; null for what is not known
     * @param numbers nanoseconds, the two halves of the trace id, the span id (zeros for that of the thread's context), the
     *     thread's id, the queue's length (negative for what is not known)
     */
    static native boolean event0(int kind, String[] texts, long[] numbers);

    /**
     * Two words of four bytes: one changes when a reference that was kept may not be used again, the other says what is to be
     * done after a change: in its lowest bit whether it is noted ({@link ContextChanges}), above that is the number of the
     * publication whose records outside readers find, or 0.
     */
    static native ByteBuffer epoch0();

    /** Where changes are noted; null if they never were. */
    static native ByteBuffer changes0();

    /** {@code Thread.threadId()} of the calling thread, whatever its class says that it is. */
    static native long threadId0();

    /** The 64 bytes of the calling thread's block; null if it can have none. */
    static native ByteBuffer block0();

    /**
     * The memory of the calling thread's record beside its block, which outside readers find from now on; null if
     * attributes are not published, or this thread's are not. Nothing may be written to an earlier record then.
     *
     * @param earlier the record of the call before; null if there was none
     */
    static native ByteBuffer publishedRecord0(ByteBuffer earlier);

    /** The epoch in the upper half, in the lower a value's reference, or 0 if it is too long or there is no room. */
    static native long intern0(String value);

    /** Counts a call whose argument is not taken, if it is one of ids, and says so in the log unless the line is null. */
    static native void refused0(boolean isOfIds, String line);

    /** The value that a reference stands for; null if it has been reclaimed. */
    static native String value0(int reference);

    /**
     * The slots of these names, nine at most, in four bits each: that of the first in the lowest.
     *
     * @throws IllegalArgumentException if there are not enough left, or a name is not one: then none is given
     */
    static native long slots0(String[] names);
}
