package io.otlpprof.opentelemetry;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextStorage;
import io.opentelemetry.context.Scope;
import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.util.List;

/** Gives the calling thread the span of each context that is attached to it, and that of the one before when it is detached. */
public final class ProfiledContextStorage implements ContextStorage {
    private final ContextStorage delegate;
    private final ContextSetter setter = new ContextSetter(Otlpprof.getInstance(), List.of());

    /**
     * Around another storage, for example by {@code ContextStorage.addWrapper(ProfiledContextStorage::new)}.
     *
     * @param delegate what keeps the contexts
     */
    public ProfiledContextStorage(ContextStorage delegate) {
        this.delegate = delegate;
    }

    @Override
    public Scope attach(Context context) {
        Scope scope = delegate.attach(context);
        follow();
        return () -> {
            scope.close();
            follow();
        };
    }

    /** What is current now, whichever scope was closed: the storage may have refused one that is not the innermost. */
    private void follow() {
        Context context = delegate.current();
        Span span = context == null ? null : Span.fromContextOrNull(context);
        SpanContext ids = span == null ? SpanContext.getInvalid() : span.getSpanContext();
        if (ids.isValid()) {
            setter.setTraceContext(ids.getTraceId(), ids.getSpanId(), ids.getTraceFlags().asByte());
        } else {
            setter.clearTraceContext();
        }
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
