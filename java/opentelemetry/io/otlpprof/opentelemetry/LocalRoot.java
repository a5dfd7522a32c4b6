package io.otlpprof.opentelemetry;

import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.sdk.trace.ReadableSpan;
import java.lang.ref.WeakReference;

/** The span with which a request entered this process. */
final class LocalRoot {
    // OpenTelemetry's semantic conventions, "HTTP spans".
    private static final AttributeKey<String> ROUTE = AttributeKey.stringKey("http.route");
    private static final AttributeKey<String> METHOD = AttributeKey.stringKey("http.request.method");

    private final WeakReference<ReadableSpan> span;
    private volatile String endpoint;
    private volatile boolean isFinal;
    /** The endpoint that the first samples have as their label; null before the first request for it. */
    private volatile String firstEndpoint;

    /**
     * Creates the local root of a span that has just been started.
     *
     * @param span the span, which is not kept alive
     */
    LocalRoot(ReadableSpan span) {
        this.span = new WeakReference<>(span);
        // The span may have been collected when the endpoint is first requested.
        this.endpoint = span.getName();
    }

    /**
     * Returns the endpoint that the span serves: method and route, otherwise the span's name. A server often
     * finds the route while it handles the request, and renames its span. The first route that is set is
     * taken as the final one: reading it again would cost more than everything else that a scope does.
     *
     * @return the endpoint as far as it is known now
     */
    String endpoint() {
        if (!isFinal) {
            read();
            if (firstEndpoint == null) {
                firstEndpoint = endpoint;
            }
        }
        return endpoint;
    }

    /** Whether this is the local root for that span. */
    boolean isOf(ReadableSpan other) {
        return span.get() == other;
    }

    /**
     * Returns the endpoint that the span has served, when it ends, if its first samples have another one.
     *
     * @return null if they have this one
     */
    String lateEndpoint() {
        read();
        return firstEndpoint == null || firstEndpoint.equals(endpoint) ? null : endpoint;
    }

    /** Returns the request's method; null if it is unknown. */
    String method() {
        ReadableSpan span = this.span.get();
        return span == null ? null : span.getAttribute(METHOD);
    }

    private void read() {
        ReadableSpan span = this.span.get();
        String route = span == null ? null : span.getAttribute(ROUTE);
        if (route != null) {
            String method = span.getAttribute(METHOD);
            endpoint = method == null ? route : method + " " + route;
        } else if (span != null) {
            endpoint = span.getName();
        }
        isFinal = span == null || route != null || span.hasEnded();
    }
}
