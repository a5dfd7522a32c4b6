package io.otlpprof;

import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.IntBuffer;

/**
 * The calling thread's block, and how it is written.
 *
 * <p>Only the thread itself comes by its block, through {@link #current()}: nothing outside this class keeps one. A
 * signal handler on the same thread reads it between any two stores. One store of four aligned bytes is seen whole; where
 * more change together the byte {@code valid} is 0 meanwhile. The handler interrupts this very thread, so all that is
 * needed is that the compiler keeps the order of the stores.
 *
 * <p>Layout: src/core/context.rs.
 */
final class ThreadContext {
    /** In place of a slot: the trace id. */
    static final int TRACE = -1;
    /** In place of a slot: the span id. */
    static final int SPAN = -2;

    private static final int TRACE_ID_HIGH = 0;
    private static final int TRACE_ID_LOW = 8;
    private static final int SPAN_ID = 16;
    /** {@code valid}, trace flags and the attributes' size (0), from the lowest byte to the highest. */
    private static final int STATE = 24;
    private static final int FIRST_SLOT = 28;
    private static final int SLOTS = 9;
    private static final int VALID = 1;

    // A view of ints is read with fewer questions asked than a buffer of bytes.
    private static final IntBuffer EPOCH = Natives.epoch0().order(ByteOrder.nativeOrder()).asIntBuffer();

    private static final ThreadLocal<ThreadContext> CURRENT = new ThreadLocal<>() {
        @Override
        protected ThreadContext initialValue() {
            return new ThreadContext();
        }
    };

    /** A value and its reference, good for one epoch. */
    private static final class Known {
        final String value;
        final int reference;
        final int epoch;

        Known(String value, int reference, int epoch) {
            this.value = value;
            this.reference = reference;
            this.epoch = epoch;
        }
    }

    private static final int KNOWN_VALUES = 4096;

    /** Values by their hash, each in one of two neighbouring places. All threads read and write it as they please. */
    private static final Known[] KNOWN = new Known[KNOWN_VALUES];

    /** The same by the lowest bits of their reference. */
    private static final Known[] BY_REFERENCE = new Known[KNOWN_VALUES];

    /** A one in each byte of a word. */
    private static final long ONES = 0x0101010101010101L;

    /** Null if the thread can have none. */
    private final ByteBuffer block;

    /** The block's slots, the fastest to be written; null if there is none. */
    private final IntBuffer slots;

    /** Whether one of the two ids has been set by {@link #setId} and the other has not. The block then has neither. */
    private boolean isWaiting;

    private long waitingTraceIdHigh;
    private long waitingTraceIdLow;
    private long waitingSpanId;

    /** A trace id as text, and as numbers: the spans of a trace usually share the very string. */
    private String traceText;

    private long textHigh;
    private long textLow;

    private long parsed;

    private ThreadContext() {
        ByteBuffer memory = Natives.block0(Thread.currentThread());
        if (memory == null) {
            block = null;
            slots = null;
        } else {
            block = memory.order(ByteOrder.nativeOrder());
            ByteBuffer afterHeader = block.duplicate();
            afterHeader.position(FIRST_SLOT);
            slots = afterHeader.slice().order(ByteOrder.nativeOrder()).asIntBuffer();
        }
    }

    static ThreadContext current() {
        return CURRENT.get();
    }

    private static int placeOfSlot(int slot) {
        return FIRST_SLOT + 4 * slot;
    }

    static int epoch() {
        return EPOCH.get(0);
    }

    boolean setLabel(int slot, String value) {
        IntBuffer slots = this.slots;
        if (slots == null) {
            return false;
        }
        if (value == null) {
            slots.put(slot, 0);
            return true;
        }
        Known known = KNOWN[index(value)];
        if (known != null
                && (known.value == value || known.value.equals(value))
                && put(slots, slot, known)) {
            return true;
        }
        return setUnknown(slots, slot, value);
    }

    /**
     * Writes a reference, and looks whether it is still good; if not, it means nothing, and is written over. The order of
     * store and load matters to the compiler alone: whoever begins an epoch has all threads pass a barrier
     * (src/context/reclaim.rs).
     */
    private static boolean put(IntBuffer slots, int slot, Known known) {
        slots.put(slot, known.reference);
        VarHandle.releaseFence();
        return known.epoch == epoch();
    }

    private static int index(String value) {
        int hash = value.hashCode();
        return (hash ^ hash >>> 16) & KNOWN_VALUES - 1;
    }

    /** Looks in the value's second place, and then asks the dictionary. */
    private boolean setUnknown(IntBuffer slots, int slot, String value) {
        int index = index(value);
        Known second = KNOWN[index ^ 1];
        if (second != null && second.epoch == epoch() && second.value.equals(value) && put(slots, slot, second)) {
            return true;
        }
        while (true) {
            long interned = Natives.intern0(value);
            Known known = new Known(value, (int) interned, (int) (interned >>> 32));
            if (known.reference == 0) {
                slots.put(slot, 0);
                return false;
            }
            if (put(slots, slot, known)) {
                Known first = KNOWN[index];
                boolean isTaken = first != null && first.epoch == known.epoch && !first.value.equals(value);
                KNOWN[isTaken ? index ^ 1 : index] = known;
                BY_REFERENCE[known.reference & KNOWN_VALUES - 1] = known;
                return true;
            }
        }
    }

    /** The value that a slot of the calling thread's block refers to: it is in use, and so it is there. */
    private static String value(int reference) {
        Known known = BY_REFERENCE[reference & KNOWN_VALUES - 1];
        if (known == null || known.reference != reference || known.epoch != epoch()) {
            return Natives.value0(reference);
        }
        return known.value;
    }

    boolean setTrace(long traceIdHigh, long traceIdLow, long spanId, int flags) {
        isWaiting = false;
        ByteBuffer block = this.block;
        if (block == null) {
            return false;
        }
        if ((traceIdHigh | traceIdLow) == 0 || spanId == 0) {
            writeHeader(block, 0, 0, 0, VALID);
            return false;
        }
        writeHeader(block, traceIdHigh, traceIdLow, spanId, (flags & 0xff) << 8 | VALID);
        return true;
    }

    boolean setTrace(String traceId, String spanId, int flags) {
        if (isTraceId(traceId) && spanId != null && spanId.length() == 16 && parse(spanId, 0)) {
            return setTrace(textHigh, textLow, parsed, flags);
        }
        clearTrace();
        return false;
    }

    /** Reads a trace id into {@link #textHigh} and {@link #textLow}. */
    private boolean isTraceId(String traceId) {
        if (traceId == null) {
            return false;
        }
        if (traceId == traceText) {
            return true;
        }
        if (traceId.length() != 32 || !parse(traceId, 16)) {
            return false;
        }
        long low = parsed;
        if (!parse(traceId, 0)) {
            return false;
        }
        textHigh = parsed;
        textLow = low;
        traceText = traceId;
        return true;
    }

    /** Reads 16 digits into {@link #parsed}. */
    private boolean parse(String text, int from) {
        long first = 0;
        long second = 0;
        int all = 0;
        for (int i = from; i < from + 8; i++) {
            char left = text.charAt(i);
            char right = text.charAt(i + 8);
            first = first << 8 | left;
            second = second << 8 | right;
            all |= left | right;
        }
        long high = digits(first);
        long low = digits(second);
        if (all > 127 || !areDigits(first, high) || !areDigits(second, low)) {
            return false;
        }
        parsed = number(high) << 32 | number(low);
        return true;
    }

    /** The values of eight hexadecimal digits, a byte for each; what is no digit has some value too. */
    private static long digits(long characters) {
        // '0' is 0x30, 'A' 0x41 and 'a' 0x61: letters have the bit 0x40, and begin with 10.
        return (characters & 0x0f * ONES) + (characters >>> 6 & ONES) * 9;
    }

    /** Whether those are the characters of these values. */
    private static boolean areDigits(long characters, long digits) {
        long lowerCase = characters | (characters & 0x40 * ONES) >>> 1;
        long isLetter = digits + 6 * ONES >>> 4 & ONES;
        return (digits & 0x10 * ONES) == 0 && digits + '0' * ONES + isLetter * ('a' - '9' - 1) == lowerCase;
    }

    /** Eight values of four bits, a byte for each, as one of 32 bits. */
    private static long number(long digits) {
        long pairs = (digits | digits >>> 4) & 0x00ff00ff00ff00ffL;
        long fours = (pairs | pairs >>> 8) & 0x0000ffff0000ffffL;
        return (fours | fours >>> 16) & 0xffffffffL;
    }

    /** Sets one of the two ids, of which only both together are a span. Null, or what is no id, clears it. */
    boolean setId(int which, String value) {
        ByteBuffer block = this.block;
        if (block == null) {
            return false;
        }
        long high = isWaiting ? waitingTraceIdHigh : id(TRACE_ID_HIGH);
        long low = isWaiting ? waitingTraceIdLow : id(TRACE_ID_LOW);
        long span = isWaiting ? waitingSpanId : id(SPAN_ID);
        int flags = block.getInt(STATE) >>> 8 & 0xff;
        boolean isGood;
        if (which == TRACE) {
            isGood = isTraceId(value) && (textHigh | textLow) != 0;
            long newHigh = isGood ? textHigh : 0;
            long newLow = isGood ? textLow : 0;
            // A span that came before any trace waits for it; one of another trace is over, and so is what its flags say.
            if (newHigh != high || newLow != low) {
                flags = 0;
                span = (high | low) == 0 ? span : 0;
            }
            high = newHigh;
            low = newLow;
        } else {
            isGood = value != null && value.length() == 16 && parse(value, 0) && parsed != 0;
            span = isGood ? parsed : 0;
        }
        setTrace(high, low, span, flags);
        isWaiting = (high | low) == 0 || span == 0;
        waitingTraceIdHigh = high;
        waitingTraceIdLow = low;
        waitingSpanId = span;
        return isGood || value == null;
    }

    private long id(int place) {
        return Long.reverseBytes(block.getLong(place));
    }

    void clearTrace() {
        isWaiting = false;
        if (block != null) {
            writeHeader(block, 0, 0, 0, VALID);
        }
    }

    private static void writeHeader(ByteBuffer block, long high, long low, long span, int state) {
        block.putInt(STATE, 0);
        VarHandle.storeStoreFence();
        putIds(block, high, low, span);
        VarHandle.storeStoreFence();
        block.putInt(STATE, state);
    }

    private static void putIds(ByteBuffer block, long high, long low, long span) {
        // The native order is little-endian wherever the agent runs; ids are big-endian.
        block.putLong(TRACE_ID_HIGH, Long.reverseBytes(high));
        block.putLong(TRACE_ID_LOW, Long.reverseBytes(low));
        block.putLong(SPAN_ID, Long.reverseBytes(span));
    }

    void clear() {
        restore(ContextSnapshot.EMPTY);
    }

    ContextSnapshot copy() {
        ByteBuffer block = this.block;
        if (block == null) {
            return ContextSnapshot.EMPTY;
        }
        String[] values = null;
        for (int slot = 0; slot < SLOTS; slot++) {
            int reference = block.getInt(placeOfSlot(slot));
            if (reference != 0) {
                values = values == null ? new String[SLOTS] : values;
                values[slot] = value(reference);
            }
        }
        int flags = block.getInt(STATE) >>> 8 & 0xff;
        return new ContextSnapshot(
                values == null ? ContextSnapshot.EMPTY.values : values,
                id(TRACE_ID_HIGH),
                id(TRACE_ID_LOW),
                id(SPAN_ID),
                flags);
    }

    /** Replaces the whole context, so that a sample shows the one or the other. */
    boolean restore(ContextSnapshot snapshot) {
        isWaiting = false;
        ByteBuffer block = this.block;
        if (block == null) {
            return false;
        }
        ContextSnapshot.References references;
        do {
            references = snapshot.references();
            block.putInt(STATE, 0);
            VarHandle.storeStoreFence();
            putIds(block, snapshot.traceIdHigh, snapshot.traceIdLow, snapshot.spanId);
            int[] bySlot = references.bySlot;
            for (int slot = 0; slot < SLOTS; slot++) {
                block.putInt(placeOfSlot(slot), slot < bySlot.length ? bySlot[slot] : 0);
            }
            VarHandle.storeStoreFence();
            block.putInt(STATE, snapshot.flags << 8 | VALID);
            VarHandle.releaseFence();
        } while (references.epoch != epoch());
        return references.complete;
    }
}
