package programs;

import io.otlpprof.Otlpprof;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;

/**
 * Loads the API by two more class loaders: {@code JarLoaders JAR}. Prints the availability in each of them.
 */
public final class JarLoaders {
    private JarLoaders() {}

    public static void main(String[] args) throws Exception {
        System.out.println(isAvailable(Otlpprof.class));
        URL[] jar = {Path.of(args[0]).toUri().toURL()};
        for (int i = 0; i < 2; i++) {
            try (URLClassLoader loader = new URLClassLoader(jar, ClassLoader.getPlatformClassLoader())) {
                System.out.println(isAvailable(loader.loadClass("io.otlpprof.Otlpprof")));
            }
        }
    }

    private static Object isAvailable(Class<?> api) throws Exception {
        Object profiler = api.getMethod("getInstance").invoke(null);
        return api.getMethod("isAvailable").invoke(profiler);
    }
}
