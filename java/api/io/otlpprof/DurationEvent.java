package io.otlpprof;

/**
 * A stretch of time that has a name: from {@link Otlpprof#openDuration(String)} until it is closed.
 *
 * <pre>{@code
 * try (DurationEvent event = PROFILER.openDuration("db.query")) {
 *     ...
 * }
 * }</pre>
 */
public final class DurationEvent implements AutoCloseable {
    private final Otlpprof profiler;
    private final String name;
    private final long startNanos;
    private boolean closed;

    DurationEvent(Otlpprof profiler, String name) {
        this.profiler = profiler;
        this.name = name;
        this.startNanos = System.nanoTime();
    }

    /** Records it, with the context of the thread that closes it. Closed a second time it does nothing. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            profiler.recordDuration(name, startNanos, System.nanoTime());
        }
    }
}
