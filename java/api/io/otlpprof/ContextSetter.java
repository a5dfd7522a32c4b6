package io.otlpprof;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * Says what the calling thread is working for: each sample of the thread then carries the attributes, and a link to the
 * span.
 *
 * <pre>{@code
 * static final ContextSetter CONTEXT =
 *         new ContextSetter(Otlpprof.getInstance(), List.of("rest_endpoint", "tenant"));
 * static final int ENDPOINT = CONTEXT.offsetOf("rest_endpoint");
 *
 * void handle(Request request) {
 *     try (ContextScope scope = CONTEXT.openScope()) {
 *         CONTEXT.setAttribute(ENDPOINT, request.route());
 *         CONTEXT.setTraceContext(request.traceId(), request.spanId(), 1);
 *         ...
 *     }
 * }
 * }</pre>
 *
 * <p>Setters act on the calling thread alone. A value that was set lately, of which some thousand are known, is set without a
 * call into native code and without allocation. Values are strings of at most 255 bytes in UTF-8, of which a process can have 65,536 in use at once;
 * one that is set and no longer in use takes no room.
 *
 * <p>Attributes belong to the process: setters that name the same attribute share it. There are nine at most, and they
 * keep their meaning until the process ends. The names {@code traceid} and {@code spanid} are the two parts of the link
 * where their values are ids, as those of {@link #setTraceContext(String, String, int)}. Set {@code traceid} first: another
 * trace forgets the span. A value that is no id is kept as that of an attribute, which takes one of the nine.
 *
 * <p>The agent's log has the first call of each kind whose argument is not recorded, with its place in the program;
 * {@code otlpprof.context.ids_refused} and {@code otlpprof.context.values_dropped_long} count them.
 *
 * <p>A virtual thread has a context of its own, which it takes along from carrier to carrier; where the JVM has no
 * continuations and virtual threads are platform threads by another name, they have none. It follows them at no cost; from
 * the first virtual thread that sets a context on, the JVM tells the agent of each one's end.
 *
 * <p>Instances may be shared. Without the agent all setters do nothing and return false; a setter that was made before
 * the agent was loaded stays that way.
 */
public final class ContextSetter {
    /** The most attributes of a setter, and of a process. */
    public static final int MAX_ATTRIBUTES = 9;

    private final String[] names;
    /** Where each name's value goes: a slot, one of the link's two parts, or, without the agent, nowhere. */
    private final int[] slots;

    private final boolean active;

    /**
     * A setter of attributes with these names.
     *
     * @param profiler the profiler
     * @param names the attributes' names, different from one another, each of 1 to 255 bytes without control characters
     * @throws IllegalArgumentException if there are more than nine names, or one is empty or given twice; with the agent
     *     also if one is too long or has control characters, or setters of this process together name more than nine
     *     attributes. None of the names is then taken
     * @throws NullPointerException if the profiler, the list or a name is null
     */
    public ContextSetter(Otlpprof profiler, List<String> names) {
        this.active = profiler.isAvailable();
        this.names = names.toArray(new String[0]);
        if (this.names.length > MAX_ATTRIBUTES) {
            throw new IllegalArgumentException(
                    "a context has " + MAX_ATTRIBUTES + " attributes at most, not " + this.names.length + ": " + names);
        }
        this.slots = new int[this.names.length];
        for (int i = 0; i < this.names.length; i++) {
            String name = Objects.requireNonNull(this.names[i], "an attribute's name");
            if (name.isEmpty() || names.indexOf(name) != i) {
                throw new IllegalArgumentException("attributes have different names, and none is empty: " + names);
            }
        }
        if (!active) {
            Arrays.fill(this.slots, ThreadContext.NOWHERE);
            return;
        }
        long given = Natives.slots0(names.stream().filter(name -> !isOfLink(name)).toArray(String[]::new));
        for (int i = 0; i < this.names.length; i++) {
            if (isOfLink(this.names[i])) {
                this.slots[i] = this.names[i].equals(IdTexts.TRACE_ID) ? ThreadContext.TRACE : ThreadContext.SPAN;
            } else {
                this.slots[i] = (int) given & 0xf;
                given >>>= 4;
            }
        }
    }

    private static boolean isOfLink(String name) {
        return name.equals(IdTexts.TRACE_ID) || name.equals(IdTexts.SPAN_ID);
    }

    /**
     * The offset by which an attribute is set fastest: its position in the list of names.
     *
     * @param name one of this setter's names
     * @return the offset
     * @throws IllegalArgumentException if it is not
     */
    public int offsetOf(String name) {
        for (int i = 0; i < names.length; i++) {
            if (names[i].equals(name)) {
                return i;
            }
        }
        throw new IllegalArgumentException("no attribute of this setter: " + name + " (it has " + List.of(names) + ")");
    }

    /**
     * Sets an attribute of the calling thread.
     *
     * @param offset as {@link #offsetOf} gave it
     * @param value the value; null clears the attribute
     * @return whether the attribute now has this value. If not, it has none: the value is longer than 255 bytes, the
     *     dictionary is full, an id is zero, text in place of an id has no attribute left, the thread can have no context, or
     *     there is no agent
     * @throws IndexOutOfBoundsException if the offset is none of this setter's
     */
    public boolean setAttribute(int offset, String value) {
        int slot = slots[offset];
        if (slot >= 0) {
            return ThreadContext.current().setLabel(slot, value);
        }
        return slot != ThreadContext.NOWHERE && IdTexts.set(slot, value);
    }

    /**
     * Sets an attribute of the calling thread.
     *
     * <pre>{@code
     * CONTEXT.setAttribute("tenant", request.tenant());
     * }</pre>
     *
     * @param name one of this setter's names
     * @param value the value; null clears the attribute
     * @return as {@link #setAttribute(int, String)}
     * @throws IllegalArgumentException if the name is not one of this setter's
     */
    public boolean setAttribute(String name, String value) {
        return setAttribute(offsetOf(name), value);
    }

    /**
     * Clears an attribute of the calling thread.
     *
     * <pre>{@code
     * CONTEXT.clearAttribute(ENDPOINT);
     * }</pre>
     *
     * @param offset as {@link #offsetOf} gave it
     * @throws IndexOutOfBoundsException if the offset is none of this setter's
     */
    public void clearAttribute(int offset) {
        setAttribute(offset, null);
    }

    /**
     * Clears an attribute of the calling thread.
     *
     * <pre>{@code
     * CONTEXT.clearAttribute("tenant");
     * }</pre>
     *
     * @param name one of this setter's names
     * @throws IllegalArgumentException if the name is not one of this setter's
     */
    public void clearAttribute(String name) {
        setAttribute(offsetOf(name), null);
    }

    /**
     * Clears the calling thread's whole context: all attributes, also those of other setters, and the span.
     *
     * <pre>{@code
     * try {
     *     task.run();
     * } finally {
     *     CONTEXT.clear();
     * }
     * }</pre>
     */
    public void clear() {
        if (active) {
            ThreadContext.current().clearContext();
        }
    }

    /**
     * Sets the span that the calling thread works for.
     *
     * @param traceId 32 hexadecimal digits, not all zero; 16 are a trace id of 64 bits
     * @param spanId 16 hexadecimal digits, not all zero
     * @param flags W3C trace flags, of which the lowest eight bits count
     * @return whether the thread now has this span. If not, it has none: an id is null, not of this form or zero, the
     *     thread can have no context, or there is no agent
     */
    public boolean setTraceContext(String traceId, String spanId, int flags) {
        return active && ThreadContext.current().setTrace(traceId, spanId, flags);
    }

    /**
     * The same with ids as numbers, big-endian: the first digit of a hexadecimal id is in the highest bits.
     *
     * @param traceIdHigh the first half of the trace id
     * @param traceIdLow its second half; not both are zero
     * @param spanId the span id, not zero
     * @param flags W3C trace flags, of which the lowest eight bits count
     * @return as {@link #setTraceContext(String, String, int)}
     */
    public boolean setTraceContext(long traceIdHigh, long traceIdLow, long spanId, int flags) {
        return active && ThreadContext.current().setTrace(traceIdHigh, traceIdLow, spanId, flags);
    }

    /**
     * Sets the span that the calling thread works for, and an attribute, at once: no sample has the one as it is now and the
     * other as it was.
     *
     * <pre>{@code
     * CONTEXT.setTraceContext(span.traceIdHigh(), span.traceIdLow(), span.id(), 1, ENDPOINT, "/checkout");
     * }</pre>
     *
     * @param traceIdHigh the first half of the trace id
     * @param traceIdLow its second half
     * @param spanId the span id; the thread works for no span if it or the trace id is zero
     * @param flags W3C trace flags, of which the lowest eight bits count
     * @param offset of the attribute, as {@link #offsetOf} gave it
     * @param value its value; null clears the attribute
     * @return whether the thread now has both: as {@link #setTraceContext(String, String, int)} and
     *     {@link #setAttribute(int, String)}
     * @throws IllegalArgumentException with the agent, if the attribute is an id of the span
     * @throws IndexOutOfBoundsException if the offset is none of this setter's
     */
    public boolean setTraceContext(
            long traceIdHigh, long traceIdLow, long spanId, int flags, int offset, String value) {
        int slot = slotBesideSpan(offset);
        return slot >= 0
                && ThreadContext.current().setTraceAndLabel(traceIdHigh, traceIdLow, spanId, flags, slot, value);
    }

    /**
     * The same with ids as text.
     *
     * @param traceId 32 hexadecimal digits; 16 are a trace id of 64 bits
     * @param spanId 16 hexadecimal digits; the thread works for no span if one of the ids is null, not of this form or zero
     * @param flags W3C trace flags, of which the lowest eight bits count
     * @param offset of the attribute, as {@link #offsetOf} gave it
     * @param value its value; null clears the attribute
     * @return as {@link #setTraceContext(long, long, long, int, int, String)}
     * @throws IllegalArgumentException with the agent, if the attribute is an id of the span
     * @throws IndexOutOfBoundsException if the offset is none of this setter's
     */
    public boolean setTraceContext(String traceId, String spanId, int flags, int offset, String value) {
        int slot = slotBesideSpan(offset);
        return slot >= 0 && ThreadContext.current().setTraceAndLabel(traceId, spanId, flags, slot, value);
    }

    /** Negative without the agent. */
    private int slotBesideSpan(int offset) {
        int slot = slots[offset];
        if (slot == ThreadContext.TRACE || slot == ThreadContext.SPAN) {
            throw new IllegalArgumentException("part of the span, which is set beside it: " + names[offset]);
        }
        return slot;
    }

    /**
     * Says that the calling thread works for no span.
     *
     * <pre>{@code
     * CONTEXT.clearTraceContext();
     * }</pre>
     */
    public void clearTraceContext() {
        if (active) {
            ThreadContext.current().clearTrace();
        }
    }

    /**
     * The calling thread's whole context, to be taken to another thread, or back later.
     *
     * <pre>{@code
     * ContextSnapshot snapshot = CONTEXT.copy();
     * executor.execute(() -> {
     *     try (ContextScope scope = CONTEXT.openScope()) {
     *         CONTEXT.restore(snapshot);
     *         ...
     *     }
     * });
     * }</pre>
     *
     * @return the values as they are now; later changes of the thread's context are not seen in it
     */
    public ContextSnapshot copy() {
        return active ? ThreadContext.current().copy() : ContextSnapshot.EMPTY;
    }

    /**
     * Gives the calling thread the context of a snapshot in place of its own.
     *
     * @param snapshot the snapshot, of whatever thread
     * @return whether the thread has all of it; false as for {@link #setAttribute(int, String)}
     * @throws NullPointerException if the snapshot is null
     */
    public boolean restore(ContextSnapshot snapshot) {
        Objects.requireNonNull(snapshot, "snapshot");
        return active && ThreadContext.current().restore(snapshot);
    }

    /**
     * A scope that gives the calling thread its present context back when it is closed.
     *
     * @return the scope
     */
    public ContextScope openScope() {
        return active ? new ContextScope(ThreadContext.current().copy()) : ContextScope.INACTIVE;
    }
}
