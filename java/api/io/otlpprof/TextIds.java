package io.otlpprof;

/** Parses trace and span ids from hexadecimal text, without allocation. For use by one thread. */
final class TextIds {
    /** A one in each byte of a word. */
    private static final long ONES = 0x0101010101010101L;

    /**
     * The text of the trace id in the fields below: the spans of a trace usually share the same string
     * object.
     */
    private String traceText;

    long traceIdHigh;
    long traceIdLow;

    /** The span id, or any other 16 digits that were parsed last. */
    long spanId;

    /** Parses a trace id, of 128 bits or of 64, into {@link #traceIdHigh} and {@link #traceIdLow}. */
    boolean readTraceId(String text) {
        if (text == null) {
            return false;
        }
        if (text == traceText) {
            return true;
        }
        if (text.length() != 32) {
            return readHalfTraceId(text);
        }
        if (!parse(text, 16)) {
            return false;
        }
        long low = spanId;
        if (!parse(text, 0)) {
            return false;
        }
        traceIdHigh = spanId;
        traceIdLow = low;
        traceText = text;
        return true;
    }

    /** Parses a trace id of 64 bits, as the lower half of an id. */
    private boolean readHalfTraceId(String text) {
        if (!readSpanId(text)) {
            return false;
        }
        traceIdHigh = 0;
        traceIdLow = spanId;
        traceText = text;
        return true;
    }

    /** Parses a span id into {@link #spanId}. */
    boolean readSpanId(String text) {
        return text != null && text.length() == 16 && parse(text, 0);
    }

    /** Parses 16 digits into {@link #spanId}. */
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
        spanId = number(high) << 32 | number(low);
        return true;
    }

    /**
     * Returns the values of eight hexadecimal digits, one per byte. Other characters also give some value.
     */
    private static long digits(long characters) {
        // '0' is 0x30, 'A' 0x41 and 'a' 0x61: letters have the bit 0x40, and begin with 10.
        return (characters & 0x0f * ONES) + (characters >>> 6 & ONES) * 9;
    }

    /** Whether the characters are digits with these values. */
    private static boolean areDigits(long characters, long digits) {
        long lowerCase = characters | (characters & 0x40 * ONES) >>> 1;
        long isLetter = digits + 6 * ONES >>> 4 & ONES;
        return (digits & 0x10 * ONES) == 0 && digits + '0' * ONES + isLetter * ('a' - '9' - 1) == lowerCase;
    }

    /** Packs eight values of four bits, one per byte, into 32 bits. */
    private static long number(long digits) {
        long pairs = (digits | digits >>> 4) & 0x00ff00ff00ff00ffL;
        long fours = (pairs | pairs >>> 8) & 0x0000ffff0000ffffL;
        return (fours | fours >>> 16) & 0xffffffffL;
    }
}
