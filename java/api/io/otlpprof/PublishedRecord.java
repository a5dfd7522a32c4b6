package io.otlpprof;

import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ThreadLocalRandom;

/**
 * What profilers outside the process read of the calling thread where attributes are published as well: its context once
 * more, in the form of OpenTelemetry's thread context (OTEP 4947, "Thread-Local Context Record"). Readers look while the
 * thread is stopped, between any two stores: the byte {@code valid} is 0 while more change together.
 */
final class PublishedRecord {
    private static final int TRACE_ID = 0;
    private static final int SPAN_ID = 16;
    private static final int VALID = 24;
    private static final int FLAGS = 25;
    private static final int ATTRIBUTES_SIZE = 26;
    private static final int ATTRIBUTES = 28;

    /** What writes for one class loader, as far as it is told apart from others that write the same records; not 0. */
    private static final long WRITER = ThreadLocalRandom.current().nextLong() | 1;

    /** Big-endian, as the ids are. */
    private final ByteBuffer memory;

    /** What the thread has, by slot; null where there is nothing. */
    private final Encoded[] values = new Encoded[ContextSetter.MAX_ATTRIBUTES];
    /** Where each value's entry begins; 0 of those that are not in the record. */
    private final int[] starts = new int[ContextSetter.MAX_ATTRIBUTES];

    private int end = ATTRIBUTES;

    /** Whether an exception has come out of the middle of a write: of the attributes, of the span. */
    private boolean isTorn;

    private boolean isTraceTorn;

    /** A value and its bytes. */
    private static final class Encoded {
        final String value;
        final byte[] bytes;

        Encoded(String value) {
            this.value = value;
            this.bytes = value.getBytes(StandardCharsets.UTF_8);
        }
    }

    private static final int RECENT_VALUES = 1024;

    /** Values by their hash. All threads read and write it as they please. */
    private static final Encoded[] RECENT = new Encoded[RECENT_VALUES];

    /** Where the attributes have to end. Behind that stands who wrote last: 0 for nobody. Readers take no notice of it. */
    private final int limit;

    private PublishedRecord(ByteBuffer memory) {
        this.memory = memory.order(ByteOrder.BIG_ENDIAN);
        this.limit = memory.capacity() - Long.BYTES;
    }

    /**
     * The calling thread's; null if it has none.
     *
     * @param earlier the one that the thread had before, to which nothing is written any longer; null for none
     */
    static PublishedRecord ofCurrentThread(PublishedRecord earlier) {
        ByteBuffer memory = Natives.publishedRecord0(earlier == null ? null : earlier.memory);
        return memory == null ? null : new PublishedRecord(memory);
    }

    /** Has readers find the context as the block has it. */
    void publish(ThreadContext context) {
        takeOver(context.copy());
        putAll();
        finish();
    }

    /**
     * From here on readers find nothing, until what follows has been set. The classes of another class loader may have
     * written since, or the agent: then all is as the block has it.
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
        // Written with what is set next.
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

    /** After {@link #begin}: zeros for no span. */
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

    /** After {@link #begin}: sets one attribute; null clears it. */
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

    /** After {@link #begin}: both, as {@link #setTrace} and {@link #setValue} set them. */
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

    /** After {@link #begin}: sets everything, of the attributes those that are in the block. */
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

    /** Writes all attributes anew, in the order of their slots. What has no room is left out. */
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
