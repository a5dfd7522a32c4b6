/** Has samples linked to the span that OpenTelemetry has as the current one. */
package io.otlpprof.opentelemetry;
