package io.otlpprof.opentelemetry;

import io.opentelemetry.context.ContextStorage;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizer;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizerProvider;

/**
 * The entry point for the SDK's autoconfiguration, and for the OpenTelemetry Java agent if this module is one
 * of its extensions.
 */
public final class ProfiledAutoConfiguration implements AutoConfigurationCustomizerProvider {
    /** Called by OpenTelemetry. */
    public ProfiledAutoConfiguration() {}

    @Override
    public void customize(AutoConfigurationCustomizer configuration) {
        // The Java agent does not ask extensions for a context storage.
        ContextStorage.addWrapper(
                storage -> storage instanceof ProfiledContextStorage
                        ? storage
                        : new ProfiledContextStorage(storage));
        configuration.addTracerProviderCustomizer(
                (provider, properties) -> provider.addSpanProcessor(new LocalRootProcessor()));
    }
}
