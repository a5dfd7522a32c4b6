package io.otlpprof;

/**
 * A thread's context as it was at one moment. It holds values, refers to no thread, and may be kept and shared.
 *
 * @see ContextSetter#copy()
 */
public final class ContextSnapshot {
    static final ContextSnapshot EMPTY = new ContextSnapshot(new String[0], 0, 0, 0, 0);

    /** By slot; null where there is no value. May be shorter than there are slots. */
    final String[] values;

    final long traceIdHigh;
    final long traceIdLow;
    final long spanId;
    final int flags;

    /** What the values' references were when they were last asked for. Written by any thread, all of it final. */
    private References references;

    ContextSnapshot(String[] values, long traceIdHigh, long traceIdLow, long spanId, int flags) {
        this.values = values;
        this.traceIdHigh = traceIdHigh;
        this.traceIdLow = traceIdLow;
        this.spanId = spanId;
        this.flags = flags;
    }

    /**
     * The values and the span, for people.
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

    /** The values' references, to be written at once. */
    References references() {
        References known = references;
        if (known == null || known.epoch != ThreadContext.epoch()) {
            known = References.of(values);
            references = known;
        }
        return known;
    }

    /** References by slot, good for one epoch. */
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
            // Those that were asked for in an earlier epoch than the last make it look old: it is then asked for anew.
            return new References(bySlot, epoch, complete);
        }
    }
}
