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
    /** What the first samples have as their label; null while nobody has asked. */
    private volatile String firstTold;

    /**
     * Of a span that has just been started.
     *
     * @param span is not kept alive
     */
    LocalRoot(ReadableSpan span) {
        this.span = new WeakReference<>(span);
        // It may be gone before anybody asks.
        this.endpoint = span.getName();
    }

    /**
     * What it serves: method and route, else its name. A server's route is often found on the way, and its span renamed. The
     * first route that is there is taken for the last: to look anew costs more than all else that a scope does.
     *
     * @return as far as it is known now
     */
    String endpoint() {
        if (!isFinal) {
            read();
            if (firstTold == null) {
                firstTold = endpoint;
            }
        }
        return endpoint;
    }

    /** Whether this is the span. */
    boolean isOf(ReadableSpan other) {
        return span.get() == other;
    }

    /**
     * What it has served, now that it ends, if that is not what all of its samples have.
     *
     * @return null if it is
     */
    String lateEndpoint() {
        read();
        return firstTold == null || firstTold.equals(endpoint) ? null : endpoint;
    }

    /** Null if that is not known. */
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
