package io.otlpprof;

/**
 * A value and its reference, good for one epoch.
 *
 * <p>All threads share those that are known, and read and write where they are as they please.
 */
final class KnownValue {
    /** No value that anyone can set. */
    static final KnownValue NOTHING = new KnownValue(null, 0);

    private static final int PLACES = 4096;

    /** By the value's hash, each in one of two neighbouring places. */
    private static final KnownValue[] KNOWN = new KnownValue[PLACES];

    /** The same by the lowest bits of their reference. */
    private static final KnownValue[] BY_REFERENCE = new KnownValue[PLACES];

    final String value;

    /** The epoch in the upper half, the reference in the lower: one load has both. */
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
        // Each character counts in the lowest bits: String multiplies by an odd number.
        return value.hashCode() & PLACES - 1;
    }

    /** What is known of a value, good or not; null if nothing is. */
    static KnownValue known(String value) {
        int index = index(value);
        KnownValue first = KNOWN[index];
        if (first != null && first.is(value)) {
            return first;
        }
        KnownValue second = KNOWN[index ^ 1];
        return second != null && second.is(value) ? second : null;
    }

    /** The same, by the dictionary where nothing good is known; {@link #NOTHING} if that does not take the value, or it is null. */
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

    /** What is used comes to the first place, and what was there to the second. */
    private static void keep(KnownValue known, int index) {
        KnownValue first = KNOWN[index];
        KNOWN[index] = known;
        if (first != null && first.isGood() && !first.value.equals(known.value)) {
            KNOWN[index ^ 1] = first;
        }
    }

    /** The value that a slot of the calling thread's block refers to: it is in use, and so it is there. */
    static String text(int reference) {
        KnownValue known = BY_REFERENCE[reference & PLACES - 1];
        if (known == null || known.reference() != reference || !known.isGood()) {
            return Natives.value0(reference);
        }
        return known.value;
    }
}
