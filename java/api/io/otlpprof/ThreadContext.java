package io.otlpprof;

import java.lang.invoke.VarHandle;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.nio.LongBuffer;

/**
 * The calling thread's block, and how it is written.
 *
 * <p>Only the thread itself comes by its block, through {@link #current()}: nothing outside this class keeps one. A
 * signal handler on the same thread reads it between any two stores. One store of four aligned bytes is seen whole; where
 * more change together the block's state says meanwhile that they do not count. The handler interrupts this very thread,
 * so all that is needed is that the compiler keeps the order of the stores.
 *
 * <p>It is a weak reference to its thread, by which a thread knows its own.
 *
 * <p>Layout: src/core/context.rs.
 */
final class ThreadContext extends WeakReference<Thread> {
    /** In place of a slot: the trace id. */
    static final int TRACE = -1;
    /** In place of a slot: the span id. */
    static final int SPAN = -2;
    /** In place of a slot: there is no agent. */
    static final int NOWHERE = -3;

    /** Places in {@link #ids}. */
    private static final int TRACE_ID_HIGH = 0;

    private static final int TRACE_ID_LOW = 1;
    private static final int SPAN_ID = 2;

    /**
     * Places in {@link #ints}. The first holds {@code valid}, trace flags and the attributes' size (0), from the lowest byte
     * to the highest.
     */
    private static final int STATE = 6;

    private static final int FIRST_SLOT = 7;
    private static final int SLOTS = 9;

    /** States: slots are being written, and nothing counts. */
    private static final int NOTHING = 0;
    /** The slots count, and the ids do not. */
    private static final int LABELS = 1 << 8;
    /** All counts; or this into the trace flags, in the second byte. */
    private static final int VALID = 1;

    /** In {@link #notices}: changes are noted. */
    private static final int NOTE = 1;

    /**
     * The epoch in the lower half, the notices in the upper: one load has both, as the library has them (little-endian alone).
     * A view of longs is read with fewer questions asked than a buffer of bytes.
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
     * Contexts by the lowest bits of their thread's id, found with fewer loads than a thread local's. All threads read and
     * write it as they please: a thread takes none but its own.
     */
    private static final ThreadContext[] RECENT = new ThreadContext[RECENT_THREADS];

    // A view of its own for each width, in the order in which the block has it, is written with fewer questions asked than a
    // buffer of bytes. Null if the thread can have no block.
    private final IntBuffer ints;
    private final LongBuffer ids;

    /** Its context once more, for outside readers; null if they read the block alone. */
    private PublishedRecord published;

    /** The publication in which it has that, or has been refused it. */
    private int publication;

    /**
     * {@link #ints}; null where a write is more than its stores: if there is no block, an exception has come out of the
     * middle of a write, or the context is published as well.
     */
    private IntBuffer intact;

    /** Whether one of the two ids has been set by {@link #setId} and the other has not. The block then has neither. */
    private boolean isWaiting;

    private long waitingTraceIdHigh;
    private long waitingTraceIdLow;
    private long waitingSpanId;

    private final TextIds textIds = new TextIds();

    /** Where changes are noted; null if none has been. */
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
        // A class of threads may say what it likes of its id.
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

    /** The epoch in the lower half; the upper is 0 where nothing is to be done after a change. */
    static long polled() {
        return POLLED.get(0);
    }

    /** What is to be done after a change; 0 for nothing. */
    private static int notices() {
        return (int) (polled() >>> 32);
    }

    private static int publication() {
        return notices() >>> 1;
    }

    /**
     * After a change: whoever begins a publication has all threads pass a barrier, so that no change goes without notice
     * (src/context/published_threads.rs).
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

    /** Leaves the publication before, of which readers find nothing any longer, and has them find this one's. */
    private void joinPublication() {
        int number = publication();
        // Until the next change, which finds out what the block has.
        intact = null;
        PublishedRecord earlier = published;
        // It is given back once, whatever comes of it.
        published = null;
        published = ints == null ? null : PublishedRecord.ofCurrentThread(earlier);
        publication = number;
        if (published != null) {
            published.publish(this);
        }
    }

    /** The record to which a change is written as well, and in which readers find nothing meanwhile; null if there is none. */
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
     * Sets a value that is known, where nothing else has to be done. One look behind one fence tells that: each fence has the
     * compiler load anew what a look goes by. The thread does not keep what it has set: to store a reference costs more than to
     * find it, most of all in an object that has become old.
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
     * Writes a reference, and looks whether it is still good; if not, it means nothing, and is written over. The order of
     * store and load matters to the compiler alone: whoever begins an epoch has all threads pass a barrier
     * (src/context/reclaim.rs). HotSpot's compilers keep every access on its side of the fence, more than its name says.
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

    /** After an exception out of the middle of a write: what the block has is no context. */
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

    /** Both at once: a sample shows them as they were, as they are now, or neither. No ids are no span. */
    boolean setTraceAndLabel(
            long traceIdHigh, long traceIdLow, long spanId, int flags, int slot, String value) {
        boolean hasSpan = (traceIdHigh | traceIdLow) != 0 && spanId != 0;
        int state = hasSpan ? (flags & 0xff) << 8 | VALID : LABELS;
        KnownValue known = value == null ? KnownValue.NOTHING : KnownValue.known(value);
        boolean isSet = intact != null && known != null && writeBoth(traceIdHigh, traceIdLow, spanId, state, slot, known)
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
                    hasSpan ? traceIdHigh : 0, hasSpan ? traceIdLow : 0, hasSpan ? spanId : 0, state >>> 8, slot, known.value);
        }
        return value == null || known.value != null;
    }

    /** As {@link #put}: if the reference is not good any longer, there is neither value nor span. */
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

    /** Whether a text has the form of one of the two ids, zero included, which is none. */
    boolean isId(int which, String text) {
        return which == TRACE ? textIds.readTraceId(text) : textIds.readSpanId(text);
    }

    /** Sets one of the two ids, of which only both together are a span. Null, or what is no id, clears it. */
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
            // A span that came before any trace waits for it; one of another trace is over, and so is what its flags say.
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
            // No block, or an exception has come out of the middle of a write: what is in it was never a context.
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

    /** Replaces the whole context, so that a sample shows the one or the other. */
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
