/** Links samples to the current span of OpenTelemetry. */
package io.otlpprof.opentelemetry;
