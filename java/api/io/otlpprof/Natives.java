package io.otlpprof;

import java.nio.ByteBuffer;

/**
 * The native methods that the agent's library implements. They are linked if the agent is in the process,
 * however it was loaded.
 */
final class Natives {
    /**
     * Changes whenever these methods or the layout of their results change. The library's number is in {@code
     * agent::java_api}.
     */
    static final int ABI = 7;

    private Natives() {}

    /** Returns the library's version. */
    static native String version0();

    /** Returns the library's {@link #ABI}. */
    static native int abi0();

    /** Loads the agent with these options, as the JVM does. Returns whether the JVM may go on. */
    static native boolean load0(String options);

    /**
     * Starts a session, with an agent string as in {@code -agentpath}. Returns a description of the problem,
     * or null.
     */
    static native String start0(String options);

    /** Stops the session. Returns whether there was one. */
    static native boolean stop0();

    /** Flushes the session. Returns whether there is one. */
    static native boolean flush0();

    static native String status0();

    /** Registers or unregisters the calling thread. Returns whether that was possible. */
    static native boolean setRegistered0(boolean isRegistered);

    /**
     * The kinds of {@link #event0}, with their texts before the thread's name. The first text is the name of
     * the event's frame.
     */
    static final int TRACE_ROOT = 0; // endpoint, operation

    static final int QUEUE = 1; // scheduler, task, queue's type, origin
    static final int DURATION = 2; // name

    /**
     * Records an event.
     *
     * @param texts the texts of the event's kind, and the thread's name; null for unknown texts
     * @param numbers nanoseconds, the two halves of the trace id, the span id (zeros: use the span of the
     *     thread's context), the thread's id, the queue's length (the last two negative if unknown)
     */
    static native boolean event0(int kind, String[] texts, long[] numbers);

    /**
     * Returns two words of four bytes. The first changes when kept references must no longer be used. The
     * second says what must follow a change: its lowest bit is set if the change is logged ({@link
     * ContextChanges}); the bits above are the number of the publication whose records outside readers find,
     * or 0.
     */
    static native ByteBuffer epoch0();

    /** Returns the memory for the log of changes; null if no changes were ever logged. */
    static native ByteBuffer changes0();

    /**
     * Returns {@code Thread.threadId()} of the calling thread, even if its class overrides {@code getId()}.
     */
    static native long threadId0();

    /** Returns the 64 bytes of the calling thread's block; null if it can have none. */
    static native ByteBuffer block0();

    /**
     * Returns the memory of the calling thread's record beside its block, which outside readers find from now
     * on; null if attributes are not published, or this thread's are not. After this call nothing may be
     * written to an earlier record.
     *
     * @param earlier the record of the previous call; null if there was none
     */
    static native ByteBuffer publishedRecord0(ByteBuffer earlier);

    /**
     * Returns the epoch in the upper half, and in the lower half a value's reference, or 0 if the value is
     * too long or there is no room.
     */
    static native long intern0(String value);

    /** Counts a call whose argument is refused, if it is an id, and logs the line unless it is null. */
    static native void refused0(boolean isOfIds, String line);

    /** Returns the value of a reference; null if it has been reclaimed. */
    static native String value0(int reference);

    /**
     * Returns the slots of these names, nine at most, in four bits each. The first name has the lowest bits.
     *
     * @throws IllegalArgumentException if not enough slots are left, or a name is invalid: then no slot is
     *     assigned
     */
    static native long slots0(String[] names);
}
