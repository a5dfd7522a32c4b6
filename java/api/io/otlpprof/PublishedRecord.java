package io.otlpprof;

import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ThreadLocalRandom;

/**
 * The record that profilers outside the process read if attributes are published too. It repeats the calling
 * thread's context in the form of OpenTelemetry's thread context (OTEP 4947, "Thread-Local Context Record").
 * Readers read while the thread is stopped, between any two stores: the byte {@code valid} is 0 while several
 * fields change.
 */
final class PublishedRecord {
    private static final int TRACE_ID = 0;
    private static final int SPAN_ID = 16;
    private static final int VALID = 24;
    private static final int FLAGS = 25;
    private static final int ATTRIBUTES_SIZE = 26;
    private static final int ATTRIBUTES = 28;

    /**
     * Identifies the writer: distinguishes the classes of one class loader from others that write the same
     * records. Not 0.
     */
    private static final long WRITER = ThreadLocalRandom.current().nextLong() | 1;

    /** Big-endian, as the ids are. */
    private final ByteBuffer memory;

    /** The thread's values, by slot; null if a slot has none. */
    private final Encoded[] values = new Encoded[ContextSetter.MAX_ATTRIBUTES];
    /** The offset of each value's entry; 0 for values that are not in the record. */
    private final int[] starts = new int[ContextSetter.MAX_ATTRIBUTES];

    private int end = ATTRIBUTES;

    /** Whether an exception has interrupted a write of the attributes, or, below, of the span. */
    private boolean isTorn;

    private boolean isTraceTorn;

    /** A value and its bytes in UTF-8. */
    private static final class Encoded {
        final String value;
        final byte[] bytes;

        Encoded(String value) {
            this.value = value;
            this.bytes = value.getBytes(StandardCharsets.UTF_8);
        }
    }

    private static final int RECENT_VALUES = 1024;

    /** Cache: encoded values by their hash. All threads read and write it without synchronization. */
    private static final Encoded[] RECENT = new Encoded[RECENT_VALUES];

    /** The limit of the attributes. After it is the id of the last writer, or 0. Readers ignore it. */
    private final int limit;

    private PublishedRecord(ByteBuffer memory) {
        this.memory = memory.order(ByteOrder.BIG_ENDIAN);
        this.limit = memory.capacity() - Long.BYTES;
    }

    /**
     * Returns the calling thread's record; null if it has none.
     *
     * @param earlier the thread's previous record, to which nothing will be written any more; null for none
     */
    static PublishedRecord ofCurrentThread(PublishedRecord earlier) {
        ByteBuffer memory = Natives.publishedRecord0(earlier == null ? null : earlier.memory);
        return memory == null ? null : new PublishedRecord(memory);
    }

    /** Makes readers find the block's context. */
    void publish(ThreadContext context) {
        takeOver(context.copy());
        putAll();
        finish();
    }

    /**
     * Hides the context from readers until the next setter has finished. If the classes of another class
     * loader, or the agent, have written since, the block's context is taken over first.
     */
    void begin(ThreadContext context) {
        if (memory.getLong(limit) != WRITER) {
            takeOver(context.copy());
        }
        hide();
    }

    private void hide() {
        memory.put(VALID, (byte) 0);
        VarHandle.storeStoreFence();
    }

    private void takeOver(ContextSnapshot snapshot) {
        // The attributes are written with the next change.
        isTorn = true;
        for (int slot = 0; slot < values.length; slot++) {
            values[slot] = encoded(slot < snapshot.values.length ? snapshot.values[slot] : null);
        }
        hide();
        putTrace(snapshot.traceIdHigh, snapshot.traceIdLow, snapshot.spanId, snapshot.flags);
        memory.putLong(limit, WRITER);
    }

    private void finish() {
        VarHandle.storeStoreFence();
        memory.put(VALID, (byte) 1);
    }

    /** Sets the span; zeros for none. Called after {@link #begin}. */
    void setTrace(long traceIdHigh, long traceIdLow, long spanId, int flags) {
        putTrace(traceIdHigh, traceIdLow, spanId, flags);
        if (isTorn) {
            putAll();
        }
        finish();
    }

    private void putTrace(long traceIdHigh, long traceIdLow, long spanId, int flags) {
        isTraceTorn = true;
        memory.putLong(TRACE_ID, traceIdHigh);
        memory.putLong(TRACE_ID + 8, traceIdLow);
        memory.putLong(SPAN_ID, spanId);
        memory.put(FLAGS, (byte) flags);
        isTraceTorn = false;
    }

    /** Sets one attribute; null clears it. Called after {@link #begin}. */
    void setValue(int slot, String value) {
        boolean wasTorn = isTorn;
        isTorn = true;
        Encoded before = values[slot];
        Encoded after = encoded(value);
        values[slot] = after;
        if (isTraceTorn) {
            putTrace(0, 0, 0, 0);
        }
        if (wasTorn) {
            putAll();
        } else if (before != after) {
            replace(slot, before, after);
        }
        isTorn = false;
        finish();
    }

    /**
     * Sets the span and an attribute, as {@link #setTrace} and {@link #setValue} do. Called after {@link
     * #begin}.
     */
    void setTraceAndValue(
            long traceIdHigh, long traceIdLow, long spanId, int flags, int slot, String value) {
        putTrace(traceIdHigh, traceIdLow, spanId, flags);
        setValue(slot, value);
    }

    private void replace(int slot, Encoded before, Encoded after) {
        if (after != null && starts[slot] != 0 && before.bytes.length == after.bytes.length) {
            put(after.bytes, starts[slot] + 2);
        } else if (after != null && starts[slot] == 0 && end + 2 + after.bytes.length <= limit) {
            append(slot);
            putSize();
        } else {
            putAll();
        }
    }

    /**
     * Sets the whole context, with only those attributes that are in the block. Called after {@link #begin}.
     */
    void setAll(ContextSnapshot snapshot, int[] references) {
        putTrace(snapshot.traceIdHigh, snapshot.traceIdLow, snapshot.spanId, snapshot.flags);
        isTorn = true;
        for (int slot = 0; slot < values.length; slot++) {
            boolean isThere = slot < references.length && references[slot] != 0;
            values[slot] = encoded(isThere ? snapshot.values[slot] : null);
        }
        putAll();
        finish();
    }

    private static Encoded encoded(String value) {
        if (value == null) {
            return null;
        }
        int hash = value.hashCode();
        int index = (hash ^ hash >>> 16) & RECENT_VALUES - 1;
        Encoded recent = RECENT[index];
        if (recent == null || !recent.value.equals(value)) {
            recent = new Encoded(value);
            RECENT[index] = recent;
        }
        return recent;
    }

    /**
     * Rewrites all attributes, in the order of their slots. Attributes for which there is no room are left
     * out.
     */
    private void putAll() {
        isTorn = true;
        end = ATTRIBUTES;
        for (int slot = 0; slot < values.length; slot++) {
            starts[slot] = 0;
            if (values[slot] != null && end + 2 + values[slot].bytes.length <= limit) {
                append(slot);
            }
        }
        putSize();
        isTorn = false;
    }

    private void append(int slot) {
        byte[] value = values[slot].bytes;
        starts[slot] = end;
        memory.put(end, (byte) slot);
        memory.put(end + 1, (byte) value.length);
        put(value, end + 2);
        end += 2 + value.length;
    }

    private void put(byte[] value, int at) {
        memory.position(at);
        memory.put(value);
    }

    private void putSize() {
        int size = end - ATTRIBUTES;
        boolean isLittle = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;
        memory.putShort(ATTRIBUTES_SIZE, isLittle ? Short.reverseBytes((short) size) : (short) size);
    }
}
