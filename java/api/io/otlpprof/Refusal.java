package io.otlpprof;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A kind of call whose argument is refused. The library counts such calls, and the agent logs the first call
 * of each kind, with its place in the program. Calls whose arguments are accepted run none of this code.
 */
enum Refusal {
    /** Invalid ids in {@code setTraceContext}: the thread has no span. */
    TRACE_CONTEXT(true, "a trace id has 32 or 16 hexadecimal digits, a span id 16; the thread has no span"),
    /** Invalid ids in {@code recordTraceRoot}: nothing is recorded. */
    TRACE_ROOT(true, "a trace id has 32 or 16 hexadecimal digits, a span id 16; nothing is recorded"),
    /**
     * A value of {@code traceid} or {@code spanid} that is not an id, and for which no attribute is left as
     * text.
     */
    ID(true, "it is not an id (32 or 16 hexadecimal digits), and no attribute is left to keep it as text"),
    /** A value that is too long. The library has counted it. */
    VALUE(false, "a value must have at most 255 bytes in UTF-8; the attribute now has no value");

    private static final int LONGEST_VALUE = 255;
    private static final int LONGEST_SHOWN = 40;

    private final boolean isOfIds;
    private final String reason;
    private final AtomicBoolean reported = new AtomicBoolean();

    Refusal(boolean isOfIds, String reason) {
        this.isOfIds = isOfIds;
        this.reason = reason;
    }

    /**
     * Checks ids of {@code setTraceContext} that gave no span. They are refused unless they are null or zero.
     * Returns 0.
     */
    static long ofTraceContext(TextIds ids, String traceId, String spanId) {
        if (traceId != null && !ids.readTraceId(traceId) || spanId != null && !ids.readSpanId(spanId)) {
            TRACE_CONTEXT.count("setTraceContext", traceId, spanId);
        }
        return 0;
    }

    /**
     * Handles a value that the dictionary has not accepted. The library itself reports that the dictionary is
     * full.
     */
    static void ofValue(String value) {
        if (!VALUE.reported.get() && value.getBytes(StandardCharsets.UTF_8).length > LONGEST_VALUE) {
            VALUE.count("setAttribute", value);
        }
    }

    void count(String method, String... arguments) {
        boolean isFirst = !reported.get() && reported.compareAndSet(false, true);
        Natives.refused0(isOfIds, isFirst ? line(method, arguments) : null);
    }

    private String line(String method, String... arguments) {
        StringBuilder line = new StringBuilder(method).append('(');
        for (String argument : arguments) {
            if (argument == null) {
                line.append("null, ");
            } else {
                boolean isLong = argument.length() > LONGEST_SHOWN;
                String shown = isLong ? argument.substring(0, LONGEST_SHOWN) + "..." : argument;
                line.append('"').append(shown).append("\", ");
            }
        }
        line.setLength(line.length() - 2);
        String caller = StackWalker.getInstance().walk(frames -> frames
                .filter(frame -> !frame.getClassName().startsWith("io.otlpprof."))
                .findFirst()
                .map(frame -> " at " + frame.toStackTraceElement())
                .orElse(""));
        return line.append(')').append(caller).append(" is refused: ").append(reason).toString();
    }
}
