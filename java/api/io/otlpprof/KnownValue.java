package io.otlpprof;

/**
 * Cache: a value and its reference, valid for one epoch.
 *
 * <p>All threads share the cached values, and read and write the arrays without synchronization.
 */
final class KnownValue {
    /** Stands for no value; no value that can be set is equal to it. */
    static final KnownValue NOTHING = new KnownValue(null, 0);

    private static final int PLACES = 4096;

    /** Known values by their hash. A value is in one of two neighbouring places. */
    private static final KnownValue[] KNOWN = new KnownValue[PLACES];

    /** Known values by the lowest bits of their references. */
    private static final KnownValue[] BY_REFERENCE = new KnownValue[PLACES];

    final String value;

    /** The epoch in the upper half, the reference in the lower: both are read by one load. */
    final long word;

    private KnownValue(String value, long word) {
        this.value = value;
        this.word = word;
    }

    int reference() {
        return (int) word;
    }

    boolean isGood() {
        return (int) (word >>> 32) == ThreadContext.epoch();
    }

    private boolean is(String other) {
        return value == other || value.equals(other);
    }

    private static int index(String value) {
        // Every character affects the lowest bits, since String multiplies by an odd number.
        return value.hashCode() & PLACES - 1;
    }

    /** Returns the cached entry of a value, valid or not; null if there is none. */
    static KnownValue known(String value) {
        int index = index(value);
        KnownValue first = KNOWN[index];
        if (first != null && first.is(value)) {
            return first;
        }
        KnownValue second = KNOWN[index ^ 1];
        return second != null && second.is(value) ? second : null;
    }

    /**
     * Returns a valid entry of a value, from the cache or from the dictionary. {@link #NOTHING} if the value
     * is null, or the dictionary does not accept it.
     */
    static KnownValue found(String value) {
        if (value == null) {
            return NOTHING;
        }
        KnownValue known = known(value);
        if (known == null || !known.isGood()) {
            known = new KnownValue(value, Natives.intern0(value));
        }
        if (known.reference() == 0) {
            Refusal.ofValue(value);
            return NOTHING;
        }
        keep(known, index(value));
        BY_REFERENCE[known.reference() & PLACES - 1] = known;
        return known;
    }

    /** Moves the entry to the first place, and the previous entry of that place to the second. */
    private static void keep(KnownValue known, int index) {
        KnownValue first = KNOWN[index];
        KNOWN[index] = known;
        if (first != null && first.isGood() && !first.value.equals(known.value)) {
            KNOWN[index ^ 1] = first;
        }
    }

    /**
     * Returns the value that a slot of the calling thread's block refers to. The value is in use, so it has
     * not been reclaimed.
     */
    static String text(int reference) {
        KnownValue known = BY_REFERENCE[reference & PLACES - 1];
        if (known == null || known.reference() != reference || !known.isGood()) {
            return Natives.value0(reference);
        }
        return known.value;
    }
}
