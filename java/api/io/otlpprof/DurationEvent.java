package io.otlpprof;

/**
 * A named stretch of time, from {@link Otlpprof#openDuration(String)} until it is closed.
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

    /** Records the event, with the context of the thread that closes it. Closing it again does nothing. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            profiler.recordDuration(name, startNanos, System.nanoTime());
        }
    }
}
