package io.otlpprof;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;

/**
 * Logs the changes of one thread's context while the agent requests it. Created when the thread's first
 * change is logged.
 *
 * <p>Layout and protocol: context/changes.rs.
 */
final class ContextChanges {
    private static final int RINGS = 32;
    private static final int ENTRIES = 4096;

    /** The size in bytes of a ring's head, which has two counts, and of an entry. */
    private static final int HEAD_BYTES = 128;

    private static final int ENTRY_BYTES = 96;

    /** Offsets in a ring's head. */
    private static final int BEGUN = 0;

    private static final int LEFT = 8;

    /** Offsets in an entry, whose first word is its turn. */
    private static final int THREAD_ID = 8;

    private static final int TIME = 16;
    private static final int BLOCK = 24;
    private static final int BLOCK_WORDS = 8;

    private static final VarHandle LONGS =
            MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

    /** The memory of the rings; null if it has not the expected size. */
    private static final ByteBuffer MEMORY = memory();

    private final long threadId;
    private final LongBuffer block;
    private final int head;
    private final int entries;

    private ContextChanges(long threadId, ByteBuffer block) {
        this.threadId = threadId;
        this.block = block.order(ByteOrder.nativeOrder()).asLongBuffer();
        int ring = (int) threadId & RINGS - 1;
        this.head = ring * HEAD_BYTES;
        this.entries = RINGS * HEAD_BYTES + ring * ENTRIES * ENTRY_BYTES;
    }

    private static ByteBuffer memory() {
        ByteBuffer memory = Natives.changes0();
        boolean isWhole = memory != null && memory.capacity() == RINGS * (HEAD_BYTES + ENTRIES * ENTRY_BYTES);
        return isWhole ? memory.order(ByteOrder.nativeOrder()) : null;
    }

    /** Returns the log of the calling thread; null if its changes cannot be logged. */
    static ContextChanges ofCurrentThread() {
        ByteBuffer block = MEMORY == null ? null : Natives.block0();
        long threadId = block == null ? 0 : Natives.threadId0();
        return threadId == 0 ? null : new ContextChanges(threadId, block);
    }

    /** Logs the current contents of the calling thread's block. */
    void note() {
        ByteBuffer memory = MEMORY;
        long number = (long) LONGS.getAndAdd(memory, head + BEGUN, 1L);
        int entry = entries + (int) (number & ENTRIES - 1) * ENTRY_BYTES;
        long round = number / ENTRIES;
        long turn = (long) LONGS.getVolatile(memory, entry);
        // Another thread may still be writing this entry for an earlier round.
        boolean isFree = (turn & 1) == 0 && turn <= 2 * round;
        if (!isFree || !LONGS.compareAndSet(memory, entry, turn, 2 * round + 1)) {
            LONGS.getAndAdd(memory, head + LEFT, 1L);
            return;
        }
        memory.putLong(entry + THREAD_ID, threadId);
        memory.putLong(entry + TIME, System.nanoTime());
        for (int word = 0; word < BLOCK_WORDS; word++) {
            memory.putLong(entry + BLOCK + 8 * word, block.get(word));
        }
        LONGS.setRelease(memory, entry, 2 * round + 2);
    }
}
