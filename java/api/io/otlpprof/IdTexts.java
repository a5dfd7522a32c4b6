package io.otlpprof;

/**
 * The attributes {@code traceid} and {@code spanid}. A value that is an id becomes part of the thread's span.
 * Any other value is stored as an ordinary attribute, which takes one of the process's nine when the first
 * such value is set.
 */
final class IdTexts {
    static final String TRACE_ID = "traceid";
    static final String SPAN_ID = "spanid";

    /** In place of a slot: no value has been text so far. */
    private static final int UNUSED = -1;
    /** In place of a slot: no slot was left. */
    private static final int NO_ROOM = -2;

    // A thread that does not see the slot that another has stored has not set a value there.
    private static int traceSlot = UNUSED;
    private static int spanSlot = UNUSED;

    private IdTexts() {}

    /**
     * Sets one of the two attributes.
     *
     * @param which {@link ThreadContext#TRACE} or {@link ThreadContext#SPAN}
     * @return whether the attribute has this value now
     */
    static boolean set(int which, String value) {
        ThreadContext context = ThreadContext.current();
        boolean isSet = context.setId(which, value);
        boolean isText = !isSet && value != null && !context.isId(which, value);
        int slot = which == ThreadContext.TRACE ? traceSlot : spanSlot;
        if (!isText) {
            if (slot >= 0) {
                context.setLabel(slot, null);
            }
            return isSet;
        }
        if (!context.hasBlock()) {
            return false;
        }
        if (slot == UNUSED) {
            slot = takeSlot(which);
        }
        if (slot < 0) {
            Refusal.ID.count("setAttribute", which == ThreadContext.TRACE ? TRACE_ID : SPAN_ID, value);
            return false;
        }
        return context.setLabel(slot, value);
    }

    private static synchronized int takeSlot(int which) {
        int slot;
        try {
            String[] names = {which == ThreadContext.TRACE ? TRACE_ID : SPAN_ID};
            slot = (int) Natives.slots0(names) & 0xf;
        } catch (IllegalArgumentException e) {
            // This holds until the process ends, since attributes keep their slots.
            slot = NO_ROOM;
        }
        if (which == ThreadContext.TRACE) {
            traceSlot = slot;
        } else {
            spanSlot = slot;
        }
        return slot;
    }
}
