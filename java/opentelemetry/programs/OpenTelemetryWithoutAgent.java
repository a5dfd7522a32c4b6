package programs;

import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextStorage;
import io.opentelemetry.context.Scope;
import io.otlpprof.opentelemetry.LocalRootProcessor;
import io.otlpprof.opentelemetry.ProfiledContextStorage;

/** Prints whether the module asks to be notified of spans, and whether it adds to scopes. */
public final class OpenTelemetryWithoutAgent {
    private OpenTelemetryWithoutAgent() {}

    public static void main(String[] args) {
        Scope own = () -> {};
        ContextStorage storage = new ProfiledContextStorage(new ContextStorage() {
            @Override
            public Scope attach(Context context) {
                return own;
            }

            @Override
            public Context current() {
                return Context.root();
            }
        });
        try (LocalRootProcessor processor = new LocalRootProcessor()) {
            System.out.println("spans " + (processor.isStartRequired() || processor.isEndRequired()));
        }
        System.out.println("scopes " + (storage.attach(Context.root()) != own));
    }
}
