package io.otlpprof;

import java.io.File;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The profiler in this process.
 *
 * <p>The agent may have been loaded with the JVM ({@code -agentpath:/path/to/libotlpprof.so=file=app.otlp} or
 * {@code -javaagent:/path/to/otlpprof.jar=file=app.otlp}), attached later, or it is loaded by {@link #getInstance()}. Without it every call does nothing, cheaply; one warning in the log
 * {@code io.otlpprof} says so.
 *
 * <pre>{@code
 * Otlpprof profiler = Otlpprof.getInstance();
 * profiler.start("cpu=10ms,endpoint=http://collector:4318,service=shop");
 * ...
 * profiler.stop();
 * }</pre>
 */
public final class Otlpprof {
    /** A system property: the class loader whose classes have loaded the library. */
    private static final String LOADED = "io.otlpprof.loader";

    private static final AtomicBoolean SAID = new AtomicBoolean();
    private static final Otlpprof WITH_AGENT = new Otlpprof(true);
    private static final Otlpprof WITHOUT_AGENT = new Otlpprof(false);

    private final boolean available;

    private Otlpprof(boolean available) {
        this.available = available;
    }

    /**
     * The agent that is in the process, or else that of the library {@code libotlpprof.so} in {@code java.library.path} or,
     * where there is none, in the jar of these classes. It is then loaded, but not started.
     *
     * <p>The library of the jar is unpacked to a file of {@code java.io.tmpdir} that only this user can read, and that is
     * gone when it has been loaded. Classes of this package that several class loaders have share an agent that the JVM
     * has loaded; one that Java loads is for the first class loader alone.
     *
     * @return the profiler; one that does nothing if there is no agent
     */
    public static Otlpprof getInstance() {
        Otlpprof linked = linked();
        if (linked != null) {
            return linked;
        }
        // Newer JDKs warn of every attempt to load a library.
        String name = System.mapLibraryName("otlpprof");
        for (String folder : System.getProperty("java.library.path", "").split(File.pathSeparator)) {
            File library = new File(folder, name);
            if (library.isFile()) {
                return getInstance(library.toPath());
            }
        }
        synchronized (Otlpprof.class) {
            linked = linked();
            return linked != null ? linked : loaded(EmbeddedLibrary::load);
        }
    }

    /**
     * The agent that is in the process, or else that of a library, which is then loaded, but not started.
     *
     * @param library the path of {@code libotlpprof.so}
     * @return the profiler; one that does nothing if the library cannot be loaded
     */
    public static Otlpprof getInstance(Path library) {
        String path = library.toAbsolutePath().toString();
        synchronized (Otlpprof.class) {
            Otlpprof linked = linked();
            return linked != null ? linked : loaded(() -> System.load(path));
        }
    }

    private static Otlpprof loaded(Runnable load) {
        String other = System.getProperty(LOADED);
        if (other != null) {
            // A second copy of the library would have contexts that the first one's samples do not see.
            return withoutAgent("its library was loaded for the classes of another class loader, " + other);
        }
        try {
            load.run();
        } catch (UnsatisfiedLinkError e) {
            return withoutAgent(e.getMessage());
        }
        System.setProperty(LOADED, String.valueOf(Otlpprof.class.getClassLoader()));
        Otlpprof linked = linked();
        return linked != null ? linked : withoutAgent("the library that was loaded is another one");
    }

    /** The agent's library, if it is in the process and can be called from here; null if there is none. */
    private static Otlpprof linked() {
        String version;
        try {
            version = Natives.version0();
        } catch (UnsatisfiedLinkError e) {
            return null;
        }
        int interfaceNumber;
        try {
            interfaceNumber = Natives.abi0();
        } catch (UnsatisfiedLinkError e) {
            interfaceNumber = 0;
        }
        if (interfaceNumber == Natives.ABI) {
            return WITH_AGENT;
        }
        return withoutAgent("the library, " + version + ", has interface " + interfaceNumber + ", these classes have "
                + Natives.ABI + "; use both from one version");
    }

    private static Otlpprof withoutAgent(String reason) {
        if (SAID.compareAndSet(false, true)) {
            // Not before it is needed: to have a logger takes a moment.
            System.getLogger("io.otlpprof")
                    .log(
                            Level.WARNING,
                            "the profiling agent is not in this process ({0}): calls of io.otlpprof do nothing",
                            reason);
        }
        return WITHOUT_AGENT;
    }

    /**
     * Whether there is an agent.
     *
     * @return whether calls have an effect
     */
    public boolean isAvailable() {
        return available;
    }

    /**
     * The agent's version.
     *
     * @return for example {@code 0.1.0}; empty without the agent
     */
    public String version() {
        return available ? Natives.version0() : "";
    }

    /**
     * Starts to profile.
     *
     * @param options as they follow the library's name in {@code -agentpath}; may be empty
     * @return whether it profiles now; false without the agent
     * @throws IllegalArgumentException if an option is wrong, and nothing has been started
     * @throws IllegalStateException if it profiles already, or cannot; nothing has changed
     */
    public boolean start(String options) {
        Objects.requireNonNull(options, "options");
        if (!available) {
            return false;
        }
        String problem = Natives.start0(options);
        if (problem == null) {
            return true;
        }
        if (problem.startsWith("options: ")) {
            throw new IllegalArgumentException(problem.substring("options: ".length()));
        }
        throw new IllegalStateException(problem);
    }

    /**
     * Stops to profile, when what is pending has been sent, which takes three seconds at most.
     *
     * @return whether it was profiling
     */
    public boolean stop() {
        return available && Natives.stop0();
    }

    /**
     * Sends what has been recorded so far.
     *
     * @return whether it is profiling
     */
    public boolean flush() {
        return available && Natives.flush0();
    }

    /**
     * What the profiler is doing.
     *
     * @return one line for people
     */
    public String status() {
        return available ? Natives.status0() : "the profiling agent is not in this process";
    }
}
