package io.otlpprof;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;

/**
 * Notes when one thread's context changes, while the agent asks for that. Made when the thread's first change is noted.
 *
 * <p>Layout and protocol: src/context/changes.rs.
 */
final class ContextChanges {
    private static final int RINGS = 32;
    private static final int ENTRIES = 4096;

    /** Bytes of a ring's two counts, and of an entry. */
    private static final int HEAD_BYTES = 128;

    private static final int ENTRY_BYTES = 96;

    /** Places in a ring's head. */
    private static final int BEGUN = 0;

    private static final int LEFT = 8;

    /** Places in an entry, which begins with whose turn it is. */
    private static final int THREAD_ID = 8;

    private static final int TIME = 16;
    private static final int BLOCK = 24;
    private static final int BLOCK_WORDS = 8;

    private static final VarHandle LONGS =
            MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

    /** Null if it is not as large as it should be. */
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

    /** The calling thread's; null if they cannot be noted. */
    static ContextChanges ofCurrentThread() {
        ByteBuffer block = MEMORY == null ? null : Natives.block0();
        long threadId = block == null ? 0 : Natives.threadId0();
        return threadId == 0 ? null : new ContextChanges(threadId, block);
    }

    /** Notes what the calling thread's block has now. */
    void note() {
        ByteBuffer memory = MEMORY;
        long number = (long) LONGS.getAndAdd(memory, head + BEGUN, 1L);
        int entry = entries + (int) (number & ENTRIES - 1) * ENTRY_BYTES;
        long round = number / ENTRIES;
        long turn = (long) LONGS.getVolatile(memory, entry);
        // Another thread may still be writing its entry of a round before.
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
