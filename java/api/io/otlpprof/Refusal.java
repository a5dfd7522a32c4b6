package io.otlpprof;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A kind of call whose argument is not recorded. The library counts such calls, and the agent's log has the first of each
 * kind, with the place in the program that made it. Nothing here is on the way of a call whose arguments are taken.
 */
enum Refusal {
    /** Ids that are none, by {@code setTraceContext}: the thread has no span. */
    TRACE_CONTEXT(true, "a trace id has 32 hexadecimal digits or 16, a span id 16; the thread has no span"),
    /** Ids that are none, by {@code recordTraceRoot}: nothing is recorded. */
    TRACE_ROOT(true, "a trace id has 32 hexadecimal digits or 16, a span id 16; nothing is recorded"),
    /** A value of the attributes {@code traceid} and {@code spanid} that is no id, and has no room as text. */
    ID(true, "it is no id (32 hexadecimal digits or 16), and the process has no attribute left to keep it as text"),
    /** A value that is too long; the library has counted it. */
    VALUE(false, "a value has at most 255 bytes in UTF-8; the attribute has none");

    private static final int LONGEST_VALUE = 255;
    private static final int LONGEST_SHOWN = 40;

    private final boolean isOfIds;
    private final String reason;
    private final AtomicBoolean said = new AtomicBoolean();

    Refusal(boolean isOfIds, String reason) {
        this.isOfIds = isOfIds;
        this.reason = reason;
    }

    /** Of {@code setTraceContext}, where no span comes of its ids: a refusal unless they are null or zero. Gives 0. */
    static long ofTraceContext(TextIds ids, String traceId, String spanId) {
        if (traceId != null && !ids.readTraceId(traceId) || spanId != null && !ids.readSpanId(spanId)) {
            TRACE_CONTEXT.count("setTraceContext", traceId, spanId);
        }
        return 0;
    }

    /** Of a value that the dictionary has not taken: of a full one the library tells by itself. */
    static void ofValue(String value) {
        if (!VALUE.said.get() && value.getBytes(StandardCharsets.UTF_8).length > LONGEST_VALUE) {
            VALUE.count("setAttribute", value);
        }
    }

    void count(String method, String... arguments) {
        boolean isFirst = !said.get() && said.compareAndSet(false, true);
        Natives.refused0(isOfIds, isFirst ? line(method, arguments) : null);
    }

    private String line(String method, String... arguments) {
        StringBuilder line = new StringBuilder(method).append('(');
        for (String argument : arguments) {
            if (argument == null) {
                line.append("null, ");
            } else {
                boolean isLong = argument.length() > LONGEST_SHOWN;
                line.append('"').append(isLong ? argument.substring(0, LONGEST_SHOWN) + "..." : argument).append("\", ");
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
