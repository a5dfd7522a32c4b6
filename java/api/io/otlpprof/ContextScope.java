package io.otlpprof;

/**
 * Restores the context that a thread had when the scope was opened. Scopes are closed in the reverse order of
 * their opening, as {@code try} does: the scope that is closed last determines the thread's context.
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
     * Closes the scope. If the scope is closed already, or another thread opened it, nothing happens: neither
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
