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
     * What it serves: method and route, else its name. A server's route is often found on the way, and its span renamed.
     *
     * @return as far as it is known now
     */
    String endpoint() {
        if (!isFinal) {
            read();
        }
        return endpoint;
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
