package io.otlpprof.opentelemetry;

import io.opentelemetry.context.ContextStorage;
import io.opentelemetry.context.ContextStorageProvider;

/** The entry point for OpenTelemetry's API, if this module is on the class path. */
public final class ProfiledContextStorageProvider implements ContextStorageProvider {
    /** Called by OpenTelemetry's API. */
    public ProfiledContextStorageProvider() {}

    @Override
    public ContextStorage get() {
        return new ProfiledContextStorage(ContextStorage.defaultStorage());
    }
}
