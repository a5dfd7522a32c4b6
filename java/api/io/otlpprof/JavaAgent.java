package io.otlpprof;

/**
 * The entry points that the JVM calls for {@code -javaagent:otlpprof.jar=OPTIONS}, and when the jar is
 * attached as an agent. Options and commands are those of {@code -agentpath}.
 *
 * <p>These classes are then in the system class loader, and the library is loaded for them. Programs whose
 * class loaders delegate to the system class loader, as is usual, share these classes and need no copy of
 * their own.
 */
public final class JavaAgent {
    private JavaAgent() {}

    /**
     * Called at the JVM's start. With the option {@code strict} a mistake in the options ends the JVM.
     *
     * @param options the agent's options; null if there are none
     */
    public static void premain(String options) {
        if (!obey(options)) {
            System.exit(1);
        }
    }

    /**
     * Called when the jar is loaded into a running JVM.
     *
     * @param options the agent's options or a command; null if there are none
     * @throws IllegalArgumentException for a mistake with the option {@code strict}; the log describes the
     *     mistake
     */
    public static void agentmain(String options) {
        if (!obey(options)) {
            throw new IllegalArgumentException("the profiler does not start with the options " + options);
        }
    }

    private static boolean obey(String options) {
        return !Otlpprof.lookNow().isAvailable() || Natives.load0(options == null ? "" : options);
    }
}
