package io.otlpprof;

import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

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
    /** In place of a place in the block: the trace id. */
    static final int TRACE = -1;
    /** In place of a place in the block: the span id. */
    static final int SPAN = -2;

    private static final int TRACE_ID_HIGH = 0;
    private static final int TRACE_ID_LOW = 8;
    private static final int SPAN_ID = 16;
    /** {@code valid}, trace flags and the attributes' size (0), from the lowest byte to the highest. */
    private static final int STATE = 24;
    private static final int FIRST_SLOT = 28;
    private static final int SLOTS = 9;
    private static final int VALID = 1;

    private static final ByteBuffer EPOCH = Natives.epoch0().order(ByteOrder.nativeOrder());

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

    /** A hexadecimal digit's value, by the character; -1 for what is none. */
    private static final byte[] DIGITS = new byte[128];

    static {
        Arrays.fill(DIGITS, (byte) -1);
        for (int i = 0; i < 16; i++) {
            DIGITS[Character.forDigit(i, 16)] = (byte) i;
            DIGITS[Character.toUpperCase(Character.forDigit(i, 16))] = (byte) i;
        }
    }

    /** Null if the thread can have none. */
    private final ByteBuffer block;

    /** The values of the slots, for those who ask for a copy; null before there is one. */
    private String[] values;

    private long traceIdHigh;
    private long traceIdLow;
    private long spanId;
    private int flags;
    /** The text of the trace id above, if it came as one: the spans of a trace usually share the very string. */
    private String traceText;

    private long parsedHigh;
    private long parsedLow;

    private ThreadContext() {
        ByteBuffer memory = Natives.block0(Thread.currentThread());
        block = memory == null ? null : memory.order(ByteOrder.nativeOrder());
    }

    static ThreadContext current() {
        return CURRENT.get();
    }

    static int placeOfSlot(int slot) {
        return FIRST_SLOT + 4 * slot;
    }

    static int epoch() {
        return EPOCH.getInt(0);
    }

    boolean setLabel(int place, String value) {
        ByteBuffer block = this.block;
        if (block == null) {
            return false;
        }
        note(place, value);
        if (value == null) {
            block.putInt(place, 0);
            return true;
        }
        Known known = KNOWN[index(value)];
        if (known != null
                && known.epoch == epoch()
                && (known.value == value || known.value.equals(value))
                && put(block, place, known)) {
            return true;
        }
        return setUnknown(block, place, value);
    }

    /**
     * Writes a reference, and looks whether it was still good then. The order of store and load matters to the
     * compiler alone: whoever begins an epoch has all threads pass a barrier (src/context/reclaim.rs).
     */
    private static boolean put(ByteBuffer block, int place, Known known) {
        block.putInt(place, known.reference);
        VarHandle.releaseFence();
        return known.epoch == epoch();
    }

    private static int index(String value) {
        int hash = value.hashCode();
        return (hash ^ hash >>> 16) & KNOWN_VALUES - 1;
    }

    private void note(int place, String value) {
        String[] values = this.values;
        if (values == null) {
            if (value == null) {
                return;
            }
            values = new String[SLOTS];
            this.values = values;
        }
        values[place - FIRST_SLOT >> 2] = value;
    }

    /** Looks in the value's second place, and then asks the dictionary. */
    private boolean setUnknown(ByteBuffer block, int place, String value) {
        int index = index(value);
        Known second = KNOWN[index ^ 1];
        if (second != null && second.epoch == epoch() && second.value.equals(value) && put(block, place, second)) {
            return true;
        }
        while (true) {
            long interned = Natives.intern0(value);
            Known known = new Known(value, (int) interned, (int) (interned >>> 32));
            if (known.reference == 0) {
                block.putInt(place, 0);
                note(place, null);
                return false;
            }
            if (put(block, place, known)) {
                Known first = KNOWN[index];
                boolean isTaken = first != null && first.epoch == known.epoch && !first.value.equals(value);
                KNOWN[isTaken ? index ^ 1 : index] = known;
                return true;
            }
        }
    }

    boolean setTrace(long traceIdHigh, long traceIdLow, long spanId, int flags) {
        traceText = null;
        return setHeader(traceIdHigh, traceIdLow, spanId, flags);
    }

    boolean setTrace(String traceId, String spanId, int flags) {
        boolean isKnown = traceId == traceText && traceId != null;
        if (isKnown) {
            parsedHigh = traceIdHigh;
            parsedLow = traceIdLow;
        }
        if (!isKnown && !parseTraceId(traceId) || spanId == null || spanId.length() != 16) {
            clearTrace();
            return false;
        }
        long high = parsedHigh;
        long low = parsedLow;
        if (!parse(spanId, 0)) {
            clearTrace();
            return false;
        }
        boolean isSet = setHeader(high, low, parsedHigh, flags);
        traceText = isSet ? traceId : null;
        return isSet;
    }

    private boolean parseTraceId(String traceId) {
        if (traceId == null || traceId.length() != 32 || !parse(traceId, 16)) {
            return false;
        }
        parsedLow = parsedHigh;
        return parse(traceId, 0);
    }

    /** Reads 16 digits into {@link #parsedHigh}. */
    private boolean parse(String text, int from) {
        long number = 0;
        int signs = 0;
        for (int i = from; i < from + 16; i++) {
            char character = text.charAt(i);
            int digit = character < 128 ? DIGITS[character] : -1;
            signs |= digit;
            number = number << 4 | digit & 15;
        }
        parsedHigh = number;
        return signs >= 0;
    }

    /** Sets one of the two ids, of which only both together are a span. */
    boolean setId(int which, String value) {
        if (value == null) {
            if (which == TRACE) {
                clearTrace();
            } else {
                forgetSpan();
            }
            return block != null;
        }
        if (which == TRACE) {
            if (!parseTraceId(value) || (parsedHigh | parsedLow) == 0) {
                clearTrace();
                return false;
            }
            long high = parsedHigh;
            long low = parsedLow;
            boolean isOther = high != traceIdHigh || low != traceIdLow;
            // A span that came before any trace waits for it; one of another trace is over.
            long span = isOther && (traceIdHigh | traceIdLow) != 0 ? 0 : spanId;
            return keepIds(high, low, span);
        }
        if (value.length() != 16 || !parse(value, 0) || parsedHigh == 0) {
            forgetSpan();
            return false;
        }
        return keepIds(traceIdHigh, traceIdLow, parsedHigh);
    }

    private void forgetSpan() {
        keepIds(traceIdHigh, traceIdLow, 0);
    }

    private boolean keepIds(long high, long low, long span) {
        traceText = null;
        if (!setHeader(high, low, span, 0)) {
            traceIdHigh = high;
            traceIdLow = low;
            spanId = span;
        }
        return block != null;
    }

    /** Whether there is a span now. */
    private boolean setHeader(long high, long low, long span, int flags) {
        ByteBuffer block = this.block;
        if ((high | low) == 0 || span == 0) {
            clearTrace();
            return false;
        }
        if (block == null) {
            return false;
        }
        traceIdHigh = high;
        traceIdLow = low;
        spanId = span;
        this.flags = flags & 0xff;
        writeHeader(block, high, low, span, (flags & 0xff) << 8 | VALID);
        return true;
    }

    void clearTrace() {
        traceIdHigh = 0;
        traceIdLow = 0;
        spanId = 0;
        flags = 0;
        traceText = null;
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
        boolean isSpan = (traceIdHigh | traceIdLow) != 0 && spanId != 0;
        String[] copied = values == null ? ContextSnapshot.EMPTY.values : values.clone();
        return isSpan
                ? new ContextSnapshot(copied, traceIdHigh, traceIdLow, spanId, flags)
                : new ContextSnapshot(copied, 0, 0, 0, 0);
    }

    /** Replaces the whole context, so that a sample shows the one or the other. */
    boolean restore(ContextSnapshot snapshot) {
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
        traceIdHigh = snapshot.traceIdHigh;
        traceIdLow = snapshot.traceIdLow;
        spanId = snapshot.spanId;
        flags = snapshot.flags;
        traceText = null;
        values = snapshot.values.length == 0 ? null : snapshot.values.clone();
        return references.complete;
    }
}
