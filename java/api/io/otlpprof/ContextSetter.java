package io.otlpprof;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * Sets the calling thread's context. Each sample of the thread then carries the context's attributes, and a
 * link to its span.
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
 * <p>Setters act only on the calling thread. Some thousand recently set values are cached: these are set
 * without a call into native code and without allocation. Values are strings of at most 255 bytes in UTF-8. A
 * process can have 65,536 values in use at once; a value that is no longer in use takes no room.
 *
 * <p>Attributes belong to the process: setters that name the same attribute share it. There are at most nine
 * attributes, which keep their meaning until the process ends. The names {@code traceid} and {@code spanid}
 * stand for the two parts of the link if their values are ids, as in {@link #setTraceContext(String, String,
 * int)}. Set {@code traceid} first: setting another trace clears the span. A value that is not an id is
 * stored as an ordinary attribute, which takes one of the nine.
 *
 * <p>The agent logs the first call of each kind whose argument is not recorded, with its place in the
 * program. The counters {@code otlpprof.context.ids_refused} and {@code otlpprof.context.values_dropped_long}
 * count all such calls.
 *
 * <p>A virtual thread has a context of its own, which moves with it from carrier to carrier at no cost. If
 * the JVM has no continuations, virtual threads are bound to platform threads, and have no context. Once the
 * first virtual thread has set a context, the JVM notifies the agent of each virtual thread's end.
 *
 * <p>Instances may be shared. Without the agent all setters do nothing and return false. An instance that was
 * created before the agent was loaded stays inactive.
 */
public final class ContextSetter {
    /** The most attributes of a setter, and of a process. */
    public static final int MAX_ATTRIBUTES = 9;

    private final String[] names;
    /**
     * The target of each name's value: a slot, a part of the link, or, without the agent, {@code NOWHERE}.
     */
    private final int[] slots;

    private final boolean active;

    /**
     * Creates a setter of attributes with these names.
     *
     * @param profiler the profiler
     * @param names the attributes' names, different from one another, each of 1 to 255 bytes without control
     *     characters
     * @throws IllegalArgumentException if there are more than nine names, or one is empty or given twice;
     *     with the agent also if one is too long or has control characters, or if the setters of this process
     *     together name more than nine attributes. In these cases none of the names is registered
     * @throws NullPointerException if the profiler, the list or a name is null
     */
    public ContextSetter(Otlpprof profiler, List<String> names) {
        this.active = profiler.isAvailable();
        this.names = names.toArray(new String[0]);
        if (this.names.length > MAX_ATTRIBUTES) {
            throw new IllegalArgumentException(
                    "a context has " + MAX_ATTRIBUTES + " attributes at most, not "
                            + this.names.length + ": " + names);
        }
        this.slots = new int[this.names.length];
        for (int i = 0; i < this.names.length; i++) {
            String name = Objects.requireNonNull(this.names[i], "an attribute's name");
            if (name.isEmpty() || names.indexOf(name) != i) {
                throw new IllegalArgumentException(
                        "attribute names must be different and not empty: " + names);
            }
        }
        if (!active) {
            Arrays.fill(this.slots, ThreadContext.NOWHERE);
            return;
        }
        long given = Natives.slots0(names.stream().filter(name -> !isOfLink(name)).toArray(String[]::new));
        for (int i = 0; i < this.names.length; i++) {
            if (isOfLink(this.names[i])) {
                this.slots[i] = this.names[i].equals(IdTexts.TRACE_ID)
                        ? ThreadContext.TRACE
                        : ThreadContext.SPAN;
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
     * Returns the offset of an attribute, by which it is set fastest: its position in the list of names.
     *
     * @param name one of this setter's names
     * @return the offset
     * @throws IllegalArgumentException if this setter has no such name
     */
    public int offsetOf(String name) {
        for (int i = 0; i < names.length; i++) {
            if (names[i].equals(name)) {
                return i;
            }
        }
        throw new IllegalArgumentException(
                "no attribute of this setter: " + name + " (it has " + List.of(names) + ")");
    }

    /**
     * Sets an attribute of the calling thread.
     *
     * @param offset the offset from {@link #offsetOf}
     * @param value the value; null clears the attribute
     * @return whether the attribute now has this value. If not, it has no value: the value is longer than 255
     *     bytes, the dictionary is full, an id is zero, no attribute is left for text in place of an id, the
     *     thread can have no context, or there is no agent
     * @throws IndexOutOfBoundsException if this setter has no such offset
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
     * @param offset the offset from {@link #offsetOf}
     * @throws IndexOutOfBoundsException if this setter has no such offset
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
     * Clears the calling thread's whole context: the span, and all attributes including those of other
     * setters.
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
     * Sets the span of the calling thread.
     *
     * @param traceId 32 hexadecimal digits, not all zero; 16 digits are a trace id of 64 bits
     * @param spanId 16 hexadecimal digits, not all zero
     * @param flags W3C trace flags, of which the lowest eight bits are used
     * @return whether the thread now has this span. If not, it has no span: an id is null, malformed or zero,
     *     the thread can have no context, or there is no agent
     */
    public boolean setTraceContext(String traceId, String spanId, int flags) {
        return active && ThreadContext.current().setTrace(traceId, spanId, flags);
    }

    /**
     * Sets the span of the calling thread, with big-endian numbers as ids: the first digit of a hexadecimal
     * id is in the highest bits.
     *
     * @param traceIdHigh the first half of the trace id
     * @param traceIdLow the second half of the trace id; one of the halves is not zero
     * @param spanId the span id, not zero
     * @param flags W3C trace flags, of which the lowest eight bits are used
     * @return as {@link #setTraceContext(String, String, int)}
     */
    public boolean setTraceContext(long traceIdHigh, long traceIdLow, long spanId, int flags) {
        return active && ThreadContext.current().setTrace(traceIdHigh, traceIdLow, spanId, flags);
    }

    /**
     * Sets the span and an attribute of the calling thread in one step: no sample has the new value of one
     * and the old value of the other.
     *
     * <pre>{@code
     * CONTEXT.setTraceContext(span.traceIdHigh(), span.traceIdLow(), span.id(), 1, ENDPOINT, "/checkout");
     * }</pre>
     *
     * @param traceIdHigh the first half of the trace id
     * @param traceIdLow the second half of the trace id
     * @param spanId the span id. If it or the trace id is zero, the thread has no span
     * @param flags W3C trace flags, of which the lowest eight bits are used
     * @param offset the attribute's offset from {@link #offsetOf}
     * @param value the attribute's value; null clears the attribute
     * @return whether the thread now has both, as {@link #setTraceContext(String, String, int)} and {@link
     *     #setAttribute(int, String)}
     * @throws IllegalArgumentException with the agent, if the attribute is a part of the span
     * @throws IndexOutOfBoundsException if this setter has no such offset
     */
    public boolean setTraceContext(
            long traceIdHigh, long traceIdLow, long spanId, int flags, int offset, String value) {
        int slot = slotBesideSpan(offset);
        return slot >= 0
                && ThreadContext.current()
                        .setTraceAndLabel(traceIdHigh, traceIdLow, spanId, flags, slot, value);
    }

    /**
     * Sets the span and an attribute of the calling thread in one step, with ids as text.
     *
     * @param traceId 32 hexadecimal digits; 16 digits are a trace id of 64 bits
     * @param spanId 16 hexadecimal digits. If one of the ids is null, malformed or zero, the thread has no
     *     span
     * @param flags W3C trace flags, of which the lowest eight bits are used
     * @param offset the attribute's offset from {@link #offsetOf}
     * @param value the attribute's value; null clears the attribute
     * @return as {@link #setTraceContext(long, long, long, int, int, String)}
     * @throws IllegalArgumentException with the agent, if the attribute is a part of the span
     * @throws IndexOutOfBoundsException if this setter has no such offset
     */
    public boolean setTraceContext(String traceId, String spanId, int flags, int offset, String value) {
        int slot = slotBesideSpan(offset);
        return slot >= 0 && ThreadContext.current().setTraceAndLabel(traceId, spanId, flags, slot, value);
    }

    /**
     * Returns the slot of an attribute that is not a part of the span; a negative number without the agent.
     */
    private int slotBesideSpan(int offset) {
        int slot = slots[offset];
        if (slot == ThreadContext.TRACE || slot == ThreadContext.SPAN) {
            throw new IllegalArgumentException(
                    "the trace and span ids of this call already set this attribute: " + names[offset]);
        }
        return slot;
    }

    /**
     * Clears the span of the calling thread.
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
     * Copies the calling thread's whole context, to restore it later or in another thread.
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
     * @return the current values; later changes of the thread's context do not affect them
     */
    public ContextSnapshot copy() {
        return active ? ThreadContext.current().copy() : ContextSnapshot.EMPTY;
    }

    /**
     * Replaces the calling thread's context by that of a snapshot.
     *
     * @param snapshot the snapshot, of any thread
     * @return whether the thread now has the whole context; false for the reasons of {@link
     *     #setAttribute(int, String)}
     * @throws NullPointerException if the snapshot is null
     */
    public boolean restore(ContextSnapshot snapshot) {
        Objects.requireNonNull(snapshot, "snapshot");
        return active && ThreadContext.current().restore(snapshot);
    }

    /**
     * Opens a scope that restores the calling thread's present context when it is closed.
     *
     * @return the scope
     */
    public ContextScope openScope() {
        return active ? new ContextScope(ThreadContext.current().copy()) : ContextScope.INACTIVE;
    }
}
