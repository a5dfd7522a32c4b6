package io.otlpprof.opentelemetry;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextStorage;
import io.opentelemetry.context.Scope;
import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.lang.System.Logger.Level;
import java.util.List;

/**
 * Sets the calling thread's span when a context is attached, and that of the previous context when it is
 * detached; and the endpoint that the span's local root serves, if {@link LocalRootProcessor} knows it.
 *
 * <p>The endpoint is the attribute {@code rest_endpoint}, or the attribute that the system property {@code
 * otlpprof.endpoint.attribute} names; none if the property is empty.
 *
 * <p>Without the agent this storage only delegates. An instance that was created before the agent was loaded
 * stays inactive.
 */
public final class ProfiledContextStorage implements ContextStorage {
    private static final String ENDPOINT_PROPERTY = "otlpprof.endpoint.attribute";
    private static final int ENDPOINT = 0;

    private final ContextStorage delegate;
    private final ContextSetter setter;
    private final boolean hasEndpoint;
    private final boolean isActive;

    /**
     * Wraps another storage, for example by {@code ContextStorage.addWrapper(ProfiledContextStorage::new)}.
     *
     * @param delegate the storage that keeps the contexts
     */
    public ProfiledContextStorage(ContextStorage delegate) {
        this.delegate = delegate;
        Otlpprof profiler = Otlpprof.getInstance();
        this.isActive = profiler.isAvailable();
        String name = System.getProperty(ENDPOINT_PROPERTY, "rest_endpoint");
        ContextSetter setter = new ContextSetter(profiler, List.of());
        boolean hasEndpoint = false;
        if (!name.isEmpty()) {
            try {
                setter = new ContextSetter(profiler, List.of(name));
                hasEndpoint = true;
            } catch (IllegalArgumentException e) {
                System.getLogger("io.otlpprof")
                        .log(Level.WARNING, "samples have no endpoint: {0}", e.getMessage());
            }
        }
        this.setter = setter;
        this.hasEndpoint = hasEndpoint;
    }

    @Override
    public Scope attach(Context context) {
        Scope scope = delegate.attach(context);
        if (!isActive) {
            return scope;
        }
        follow(context == null ? delegate.current() : context);
        return () -> {
            scope.close();
            // The current context decides, not the closed scope: the storage may have refused to close one
            // that is not the innermost.
            follow(delegate.current());
        };
    }

    private void follow(Context context) {
        Span span = context == null ? null : Span.fromContextOrNull(context);
        KnownSpan known = span == null ? null : KnownSpan.of(span);
        if (known != null) {
            set(known.traceIdHigh, known.traceIdLow, known.spanId, known.flags, known.root);
            return;
        }
        SpanContext ids = span == null ? SpanContext.getInvalid() : span.getSpanContext();
        if (!ids.isValid()) {
            set(0, 0, 0, 0, null);
            return;
        }
        byte flags = ids.getTraceFlags().asByte();
        if (areEndpointsSet()) {
            setter.setTraceContext(ids.getTraceId(), ids.getSpanId(), flags, ENDPOINT, null);
        } else {
            setter.setTraceContext(ids.getTraceId(), ids.getSpanId(), flags);
        }
    }

    private void set(long traceIdHigh, long traceIdLow, long spanId, int flags, LocalRoot root) {
        if (areEndpointsSet()) {
            String endpoint = root == null ? null : root.endpoint();
            setter.setTraceContext(traceIdHigh, traceIdLow, spanId, flags, ENDPOINT, endpoint);
        } else {
            setter.setTraceContext(traceIdHigh, traceIdLow, spanId, flags);
        }
    }

    private boolean areEndpointsSet() {
        return hasEndpoint && KnownSpan.hasProcessor;
    }

    @Override
    public Context current() {
        return delegate.current();
    }

    @Override
    public Context root() {
        return delegate.root();
    }
}
