package io.otlpprof;

/**
 * Gives a thread back the context that it had when the scope was opened. Scopes are closed in the reverse order of their
 * opening, as {@code try} does it: whichever is closed last decides what the thread's context is.
 *
 * <pre>{@code
 * try (ContextScope scope = CONTEXT.openScope()) {
 *     CONTEXT.setAttribute(ENDPOINT, "/checkout");
 *     ...
 * }
 * }</pre>
 */
public final class ContextScope implements AutoCloseable {
    static final ContextScope INACTIVE = new ContextScope();

    private final ContextSnapshot before;
    private final Thread owner;
    private boolean closed;

    private ContextScope() {
        this.before = ContextSnapshot.EMPTY;
        this.owner = null;
        this.closed = true;
    }

    ContextScope(ContextSnapshot before) {
        this.before = before;
        this.owner = Thread.currentThread();
    }

    /**
     * Closes the scope. Closed a second time, or by another thread than the one that opened it, it does nothing: neither
     * thread's context changes.
     */
    @Override
    public void close() {
        if (Thread.currentThread() == owner && !closed) {
            closed = true;
            ThreadContext.current().restore(before);
        }
    }
}
