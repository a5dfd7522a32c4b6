package io.otlpprof;

/**
 * A thread's context at one moment. It contains values, refers to no thread, and may be kept and shared.
 *
 * @see ContextSetter#copy()
 */
public final class ContextSnapshot {
    static final ContextSnapshot EMPTY = new ContextSnapshot(new String[0], 0, 0, 0, 0);

    /** The values by slot; null if a slot has none. May be shorter than the number of slots. */
    final String[] values;

    final long traceIdHigh;
    final long traceIdLow;
    final long spanId;
    final int flags;

    /**
     * Cache: the values' references at their last use. Any thread may write this field; all fields of the
     * object are final.
     */
    private References references;

    ContextSnapshot(String[] values, long traceIdHigh, long traceIdLow, long spanId, int flags) {
        this.values = values;
        this.traceIdHigh = traceIdHigh;
        this.traceIdLow = traceIdLow;
        this.spanId = spanId;
        this.flags = flags;
    }

    /**
     * Formats the values and the span, for people.
     *
     * @return for example {@code [/checkout, null; 0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331]}
     */
    @Override
    public String toString() {
        String span = spanId == 0
                ? "no span"
                : String.format("%016x%016x-%016x", traceIdHigh, traceIdLow, spanId);
        return "[" + String.join(", ", values) + "; " + span + "]";
    }

    /** Returns the values' references, which must be written at once. */
    References references() {
        References known = references;
        if (known == null || known.epoch != ThreadContext.epoch()) {
            known = References.of(values);
            references = known;
        }
        return known;
    }

    /** References by slot, valid for one epoch. */
    static final class References {
        final int[] bySlot;
        final int epoch;
        final boolean complete;

        private References(int[] bySlot, int epoch, boolean complete) {
            this.bySlot = bySlot;
            this.epoch = epoch;
            this.complete = complete;
        }

        private static References of(String[] values) {
            int epoch = ThreadContext.epoch();
            int[] bySlot = new int[values.length];
            boolean complete = true;
            for (int slot = 0; slot < values.length; slot++) {
                if (values[slot] != null) {
                    bySlot[slot] = (int) Natives.intern0(values[slot]);
                    complete &= bySlot[slot] != 0;
                }
            }
            // If the epoch has changed meanwhile, this object counts as outdated, and the references are
            // requested again.
            return new References(bySlot, epoch, complete);
        }
    }
}
