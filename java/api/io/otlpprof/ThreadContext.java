package io.otlpprof;

import java.lang.invoke.VarHandle;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.nio.LongBuffer;

/**
 * The calling thread's block, and the writes to it.
 *
 * <p>Only the thread itself has access to its block, through {@link #current()}: nothing outside this class
 * keeps a reference to it. A signal handler on the same thread may read the block between any two stores. A
 * store of four aligned bytes is seen as a whole. While more than that changes, the block's state says that
 * the changing parts do not count. The handler interrupts this very thread, so it suffices that the compiler
 * keeps the order of the stores.
 *
 * <p>This object is a weak reference to its thread, by which a thread recognises its own.
 *
 * <p>Layout: core/context.rs.
 */
final class ThreadContext extends WeakReference<Thread> {
    /** In place of a slot: the trace id. */
    static final int TRACE = -1;
    /** In place of a slot: the span id. */
    static final int SPAN = -2;
    /** In place of a slot: there is no agent. */
    static final int NOWHERE = -3;

    /** Indices in {@link #ids}. */
    private static final int TRACE_ID_HIGH = 0;

    private static final int TRACE_ID_LOW = 1;
    private static final int SPAN_ID = 2;

    /**
     * Indices in {@link #ints}. The word of the state has {@code valid}, the trace flags and the attributes'
     * size (0), from the lowest byte to the highest.
     */
    private static final int STATE = 6;

    private static final int FIRST_SLOT = 7;
    private static final int SLOTS = 9;

    /** State: slots are being written, and nothing counts. */
    private static final int NOTHING = 0;
    /** State: the slots count, the ids do not. */
    private static final int LABELS = 1 << 8;
    /** State, combined with the trace flags in the second byte: everything counts. */
    private static final int VALID = 1;

    /** In {@link #notices}: changes are logged. */
    private static final int NOTE = 1;

    /**
     * The epoch in the lower half, the notices in the upper half, as the library has them: both are read by
     * one load (little-endian only). A view of longs is read with fewer checks than a buffer of bytes.
     */
    private static final LongBuffer POLLED = Natives.epoch0().order(ByteOrder.nativeOrder()).asLongBuffer();

    private static final ThreadLocal<ThreadContext> CURRENT = new ThreadLocal<>() {
        @Override
        protected ThreadContext initialValue() {
            return new ThreadContext(Thread.currentThread());
        }
    };

    private static final int RECENT_THREADS = 256;

    /**
     * Cache: contexts by the lowest bits of their thread's id, found with fewer loads than a thread local's.
     * All threads read and write the array without synchronization; a thread uses only the entry of its own.
     */
    private static final ThreadContext[] RECENT = new ThreadContext[RECENT_THREADS];

    // The views have different widths and the block's byte orders. They are written with fewer checks than a
    // buffer of bytes. Null if the thread can have no block.
    private final IntBuffer ints;
    private final LongBuffer ids;

    /** The copy of the context for outside readers; null if they read only the block. */
    private PublishedRecord published;

    /** The publication in which the thread has that copy, or in which it was refused. */
    private int publication;

    /**
     * {@link #ints}, or null if a write takes more than its stores: if there is no block, if an exception has
     * interrupted a write, or if the context is published as well.
     */
    private IntBuffer intact;

    /**
     * Whether one of the two ids has been set by {@link #setId} and the other has not. The block then has
     * neither.
     */
    private boolean isWaiting;

    private long waitingTraceIdHigh;
    private long waitingTraceIdLow;
    private long waitingSpanId;

    private final TextIds textIds = new TextIds();

    /** The log of changes; null if no change has been logged. */
    private ContextChanges changes;

    private ThreadContext(Thread current) {
        super(current);
        ByteBuffer memory = Natives.block0();
        ints = memory == null ? null : memory.order(ByteOrder.nativeOrder()).asIntBuffer();
        ids = memory == null ? null : memory.order(ByteOrder.BIG_ENDIAN).asLongBuffer();
        intact = ints;
    }

    static ThreadContext current() {
        Thread thread = Thread.currentThread();
        // A subclass of Thread may return any id.
        int index = (int) thread.getId() & RECENT_THREADS - 1;
        ThreadContext recent = RECENT[index];
        if (recent != null && recent.get() == thread) {
            return recent;
        }
        ThreadContext context = CURRENT.get();
        RECENT[index] = context;
        return context;
    }

    static int epoch() {
        return (int) polled();
    }

    /** Returns the epoch in the lower half. The upper half is 0 if nothing must follow a change. */
    static long polled() {
        return POLLED.get(0);
    }

    /** Returns what must follow a change; 0: nothing. */
    private static int notices() {
        return (int) (polled() >>> 32);
    }

    private static int publication() {
        return notices() >>> 1;
    }

    /**
     * Must follow a change. The agent makes all threads pass a barrier when it begins a publication, so that
     * no change misses its notice (context/published_threads.rs).
     */
    private void changed() {
        VarHandle.releaseFence();
        if (notices() != 0) {
            heedNotices();
        }
    }

    private void heedNotices() {
        if (publication() != publication) {
            joinPublication();
        }
        if ((notices() & NOTE) != 0) {
            noteChange();
        }
    }

    /**
     * Leaves the previous publication, whose record readers no longer find, and publishes in the current one.
     */
    private void joinPublication() {
        int number = publication();
        // Until the next change, which finds out the state of the block.
        intact = null;
        PublishedRecord earlier = published;
        // The record is given back only once, even if what follows throws.
        published = null;
        published = ints == null ? null : PublishedRecord.ofCurrentThread(earlier);
        publication = number;
        if (published != null) {
            published.publish(this);
        }
    }

    /**
     * Returns the record to which the change must be written as well, hidden from readers meanwhile; null if
     * there is none.
     */
    private PublishedRecord beginPublished() {
        if (published != null && publication() != publication) {
            joinPublication();
        }
        if (published != null) {
            published.begin(this);
        }
        return published;
    }

    private void noteChange() {
        if (changes == null && ints != null) {
            changes = ContextChanges.ofCurrentThread();
        }
        if (changes != null) {
            changes.note();
        }
    }

    boolean setLabel(int slot, String value) {
        if (setFast(slot, value)) {
            return true;
        }
        boolean isSet = putLabel(slot, value);
        changed();
        return isSet;
    }

    /**
     * Sets a cached value, if nothing else must be done. One check after one fence decides that: after each
     * fence the compiler must load the checked values again. The thread does not remember what it has set:
     * storing a reference costs more than searching it, above all in an object that has become old.
     */
    private boolean setFast(int slot, String value) {
        IntBuffer ints = intact;
        KnownValue known = ints == null || value == null ? null : KnownValue.known(value);
        if (known == null) {
            return false;
        }
        long word = known.word;
        ints.put(FIRST_SLOT + slot, (int) word);
        VarHandle.releaseFence();
        return polled() == word >>> 32;
    }

    private boolean putLabel(int slot, String value) {
        IntBuffer ints = intact;
        if (ints == null) {
            return setSlowly(slot, value);
        }
        if (value == null) {
            ints.put(FIRST_SLOT + slot, 0);
            return true;
        }
        KnownValue known = KnownValue.known(value);
        return known != null && put(ints, slot, known) || setSlowly(slot, value);
    }

    /**
     * Writes a reference, and checks whether it is still valid. If not, it refers to nothing, and is
     * overwritten. The order of store and load matters only to the compiler: the agent makes all threads pass
     * a barrier when it begins an epoch (context/reclaim.rs). HotSpot's compilers move no access across
     * the fence in either direction, which is more than its name says.
     */
    private static boolean put(IntBuffer ints, int slot, KnownValue known) {
        ints.put(FIRST_SLOT + slot, known.reference());
        VarHandle.releaseFence();
        return known.isGood();
    }

    private boolean setSlowly(int slot, String value) {
        if (ints == null) {
            return false;
        }
        mend();
        PublishedRecord published = beginPublished();
        return published == null ? setInBlock(slot, value) : setAndPublish(published, slot, value);
    }

    private boolean setAndPublish(PublishedRecord published, int slot, String value) {
        KnownValue known = value == null ? null : KnownValue.known(value);
        boolean isKnown = known != null && put(ints, slot, known);
        boolean isSet = isKnown || setInBlock(slot, value);
        published.setValue(slot, isSet ? value : null);
        return isSet;
    }

    private boolean setInBlock(int slot, String value) {
        while (true) {
            KnownValue known = KnownValue.found(value);
            if (put(ints, slot, known) || known.reference() == 0) {
                return value == null || known.reference() != 0;
            }
        }
    }

    /**
     * Repairs the state after an exception has interrupted a write: the contents of the block are then no
     * context.
     */
    private void mend() {
        if (intact == null) {
            if (ints.get(STATE) == NOTHING) {
                clearContext();
            }
            intact = published == null ? ints : null;
        }
    }

    boolean setTrace(long traceIdHigh, long traceIdLow, long spanId, int flags) {
        IntBuffer ints = this.ints;
        LongBuffer ids = this.ids;
        if (ints == null) {
            return false;
        }
        if ((traceIdHigh | traceIdLow) == 0 || spanId == 0) {
            clearTrace();
            return false;
        }
        if (intact == null) {
            return setTraceSlowly(traceIdHigh, traceIdLow, spanId, flags);
        }
        writeTrace(ints, ids, traceIdHigh, traceIdLow, spanId, flags);
        isWaiting = false;
        changed();
        return true;
    }

    /**
     * Sets both in one step: a sample has both old, both new, or neither. Without valid ids there is no span.
     */
    boolean setTraceAndLabel(
            long traceIdHigh, long traceIdLow, long spanId, int flags, int slot, String value) {
        boolean hasSpan = (traceIdHigh | traceIdLow) != 0 && spanId != 0;
        int state = hasSpan ? (flags & 0xff) << 8 | VALID : LABELS;
        KnownValue known = value == null ? KnownValue.NOTHING : KnownValue.known(value);
        boolean isSet = intact != null
                        && known != null
                        && writeBoth(traceIdHigh, traceIdLow, spanId, state, slot, known)
                || setBothSlowly(traceIdHigh, traceIdLow, spanId, state, slot, value);
        isWaiting = false;
        changed();
        return isSet && hasSpan;
    }

    boolean setTraceAndLabel(String traceId, String spanId, int flags, int slot, String value) {
        TextIds ids = textIds;
        long span = ids.readTraceId(traceId) && ids.readSpanId(spanId)
                ? ids.spanId
                : Refusal.ofTraceContext(ids, traceId, spanId);
        return setTraceAndLabel(ids.traceIdHigh, ids.traceIdLow, span, flags, slot, value);
    }

    private boolean setBothSlowly(
            long traceIdHigh, long traceIdLow, long spanId, int state, int slot, String value) {
        if (ints == null) {
            return false;
        }
        mend();
        PublishedRecord published = beginPublished();
        KnownValue known = value == null ? KnownValue.NOTHING : KnownValue.known(value);
        while (known == null || !writeBoth(traceIdHigh, traceIdLow, spanId, state, slot, known)) {
            known = KnownValue.found(value);
        }
        if (published != null) {
            boolean hasSpan = state != LABELS;
            published.setTraceAndValue(
                    hasSpan ? traceIdHigh : 0,
                    hasSpan ? traceIdLow : 0,
                    hasSpan ? spanId : 0,
                    state >>> 8,
                    slot,
                    known.value);
        }
        return value == null || known.value != null;
    }

    /**
     * Writes span and value as {@link #put} does. If the reference is no longer valid, the block has neither
     * value nor span.
     */
    private boolean writeBoth(
            long traceIdHigh, long traceIdLow, long spanId, int state, int slot, KnownValue known) {
        IntBuffer ints = this.ints;
        LongBuffer ids = this.ids;
        try {
            ints.put(STATE, NOTHING);
            VarHandle.storeStoreFence();
            ids.put(TRACE_ID_HIGH, traceIdHigh);
            ids.put(TRACE_ID_LOW, traceIdLow);
            ids.put(SPAN_ID, spanId);
            boolean isGood = put(ints, slot, known) || known.value == null;
            if (!isGood) {
                ints.put(FIRST_SLOT + slot, 0);
            }
            VarHandle.storeStoreFence();
            ints.put(STATE, isGood ? state : LABELS);
            return isGood;
        } catch (StackOverflowError e) {
            intact = null;
            throw e;
        }
    }

    private boolean setTraceSlowly(long traceIdHigh, long traceIdLow, long spanId, int flags) {
        mend();
        PublishedRecord published = beginPublished();
        writeTrace(ints, ids, traceIdHigh, traceIdLow, spanId, flags);
        isWaiting = false;
        if (published != null) {
            published.setTrace(traceIdHigh, traceIdLow, spanId, flags);
        }
        changed();
        return true;
    }

    private static void writeTrace(
            IntBuffer ints, LongBuffer ids, long traceIdHigh, long traceIdLow, long spanId, int flags) {
        ints.put(STATE, LABELS);
        VarHandle.storeStoreFence();
        ids.put(TRACE_ID_HIGH, traceIdHigh);
        ids.put(TRACE_ID_LOW, traceIdLow);
        ids.put(SPAN_ID, spanId);
        VarHandle.storeStoreFence();
        ints.put(STATE, (flags & 0xff) << 8 | VALID);
    }

    boolean setTrace(String traceId, String spanId, int flags) {
        if (textIds.readTraceId(traceId) && textIds.readSpanId(spanId)) {
            return setTrace(textIds.traceIdHigh, textIds.traceIdLow, textIds.spanId, flags);
        }
        clearTrace();
        Refusal.ofTraceContext(textIds, traceId, spanId);
        return false;
    }

    boolean hasBlock() {
        return ints != null;
    }

    /** Whether a text has the form of an id of this kind. Zero has the form, though it is not an id. */
    boolean isId(int which, String text) {
        return which == TRACE ? textIds.readTraceId(text) : textIds.readSpanId(text);
    }

    /** Sets one of the two ids; only both together are a span. Null, or text that is not an id, clears it. */
    boolean setId(int which, String value) {
        if (ints == null) {
            return false;
        }
        boolean hasSpan = hasSpan();
        long high = isWaiting ? waitingTraceIdHigh : hasSpan ? ids.get(TRACE_ID_HIGH) : 0;
        long low = isWaiting ? waitingTraceIdLow : hasSpan ? ids.get(TRACE_ID_LOW) : 0;
        long span = isWaiting ? waitingSpanId : hasSpan ? ids.get(SPAN_ID) : 0;
        int flags = hasSpan ? flags() : 0;
        boolean isGood;
        if (which == TRACE) {
            isGood = textIds.readTraceId(value) && (textIds.traceIdHigh | textIds.traceIdLow) != 0;
            long newHigh = isGood ? textIds.traceIdHigh : 0;
            long newLow = isGood ? textIds.traceIdLow : 0;
            // A span id that was set before any trace id is kept for it. A span of another trace is over, and
            // its flags with it.
            if (newHigh != high || newLow != low) {
                flags = 0;
                span = (high | low) == 0 ? span : 0;
            }
            high = newHigh;
            low = newLow;
        } else {
            isGood = textIds.readSpanId(value) && textIds.spanId != 0;
            span = isGood ? textIds.spanId : 0;
        }
        setTrace(high, low, span, flags);
        isWaiting = (high | low) == 0 || span == 0;
        waitingTraceIdHigh = high;
        waitingTraceIdLow = low;
        waitingSpanId = span;
        return isGood || value == null;
    }

    void clearTrace() {
        isWaiting = false;
        IntBuffer ints = intact;
        if (ints != null) {
            ints.put(STATE, LABELS);
        } else {
            clearTraceSlowly();
        }
        changed();
    }

    private void clearTraceSlowly() {
        if (ints == null) {
            return;
        }
        mend();
        PublishedRecord published = beginPublished();
        ints.put(STATE, LABELS);
        if (published != null) {
            published.setTrace(0, 0, 0, 0);
        }
    }

    private boolean hasSpan() {
        return (ints.get(STATE) & VALID) != 0;
    }

    private int flags() {
        return ints.get(STATE) >>> 8 & 0xff;
    }

    void clearContext() {
        restore(ContextSnapshot.EMPTY);
    }

    ContextSnapshot copy() {
        if (ints == null || ints.get(STATE) == NOTHING) {
            // There is no block, or an exception has interrupted a write: the contents were never a context.
            return ContextSnapshot.EMPTY;
        }
        String[] values = null;
        for (int slot = 0; slot < SLOTS; slot++) {
            int reference = ints.get(FIRST_SLOT + slot);
            if (reference != 0) {
                values = values == null ? new String[SLOTS] : values;
                values[slot] = KnownValue.text(reference);
            }
        }
        values = values == null ? ContextSnapshot.EMPTY.values : values;
        if (!hasSpan()) {
            return new ContextSnapshot(values, 0, 0, 0, 0);
        }
        return new ContextSnapshot(
                values, ids.get(TRACE_ID_HIGH), ids.get(TRACE_ID_LOW), ids.get(SPAN_ID), flags());
    }

    /** Replaces the whole context, so that a sample has either the old or the new one. */
    boolean restore(ContextSnapshot snapshot) {
        isWaiting = false;
        if (ints == null) {
            return false;
        }
        PublishedRecord published = beginPublished();
        ContextSnapshot.References references;
        do {
            references = snapshot.references();
            write(snapshot, references.bySlot);
            VarHandle.releaseFence();
        } while (references.epoch != epoch());
        if (published != null) {
            published.setAll(snapshot, references.bySlot);
        }
        changed();
        return references.complete;
    }

    private void write(ContextSnapshot snapshot, int[] bySlot) {
        try {
            ints.put(STATE, NOTHING);
            VarHandle.storeStoreFence();
            ids.put(TRACE_ID_HIGH, snapshot.traceIdHigh);
            ids.put(TRACE_ID_LOW, snapshot.traceIdLow);
            ids.put(SPAN_ID, snapshot.spanId);
            for (int slot = 0; slot < SLOTS; slot++) {
                ints.put(FIRST_SLOT + slot, slot < bySlot.length ? bySlot[slot] : 0);
            }
            VarHandle.storeStoreFence();
            ints.put(STATE, snapshot.spanId == 0 ? LABELS : snapshot.flags << 8 | VALID);
        } catch (StackOverflowError e) {
            intact = null;
            throw e;
        }
    }
}
