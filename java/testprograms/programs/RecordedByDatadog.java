package programs;

import java.lang.reflect.Method;
import java.util.List;

/**
 * Runs {@link Recorded} under Datadog's profiler, which is reached by reflection, with a context of its own
 * in the main thread: {@code RecordedByDatadog COMMAND [SECONDS]}. COMMAND starts the profiler.
 */
public final class RecordedByDatadog {
    private RecordedByDatadog() {}

    public static void main(String[] args) throws Exception {
        Class<?> type = Class.forName("com.datadoghq.profiler.JavaProfiler");
        Object profiler = type.getMethod("getInstance").invoke(null);
        Method execute = type.getMethod("execute", String.class);
        execute.invoke(profiler, args[0]);
        type.getMethod("addThread").invoke(profiler);
        type.getMethod("setContext", long.class, long.class).invoke(profiler, 0x1234_5678L, 0x9abc_def0L);
        Class<?> setter = Class.forName("com.datadoghq.profiler.ContextSetter");
        Object context = setter.getConstructor(type, List.class)
                .newInstance(profiler, List.of("traceid", "rest_endpoint"));
        setter.getMethod("setContextValue", String.class, String.class)
                .invoke(context, "traceid", "0123456789abcdef0123456789abcdef");
        // Without any value the recording would have an empty pool of strings, which the JDK's reader
        // refuses.
        setter.getMethod("setContextValue", String.class, String.class)
                .invoke(context, "rest_endpoint", "GET /mice");
        Recorded.main(args.length > 1 ? new String[] {args[1]} : new String[0]);
        Clock clock = new Clock(new String[0], 1);
        double sum = 0;
        while (clock.isRunning()) {
            for (int i = 1; i < 100_000; i++) {
                sum += Math.sin(i) / i;
            }
        }
        Recorded.number = sum;
        execute.invoke(profiler, "stop");
    }
}
