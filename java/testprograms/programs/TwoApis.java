package programs;

import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.List;

/**
 * One thread sets its context in turn through the API's classes of two class loaders, and then waits for a
 * minute.
 */
public final class TwoApis {
    private TwoApis() {}

    public static void main(String[] args) throws Exception {
        ContextSetter one = new ContextSetter(Otlpprof.getInstance(), List.of("endpoint"));
        check(one.setTraceContext(1, 2, 3, 1));
        check(one.setAttribute(0, "/checkout"));
        URL[] api = {Otlpprof.class.getProtectionDomain().getCodeSource().getLocation()};
        try (URLClassLoader loader = new URLClassLoader(api, ClassLoader.getPlatformClassLoader())) {
            Class<?> profiler = loader.loadClass("io.otlpprof.Otlpprof");
            Class<?> setter = loader.loadClass("io.otlpprof.ContextSetter");
            Object other = setter.getConstructor(profiler, List.class)
                    .newInstance(profiler.getMethod("getInstance").invoke(null), List.of("tenant"));
            check((boolean) setter.getMethod("setAttribute", int.class, String.class)
                    .invoke(other, 0, "tenant-42"));
            check(one.setAttribute(0, "/payments"));
            System.out.println("set");
            Thread.sleep(60_000);
        }
    }

    private static void check(boolean done) {
        if (!done) {
            throw new AssertionError();
        }
    }
}
