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

    /** For how long a look that has found no agent is not made again: it throws an exception, and asks for files. */
    private static final long MISSING_NS = 1_000_000_000;

    private static final AtomicBoolean SAID = new AtomicBoolean();
    /** Whether there is an agent, which then stays. */
    private static volatile boolean isFound;
    /** Whether a look has found none, until {@link #missingUntil}. */
    private static volatile boolean isMissing;
    /** By {@link System#nanoTime()}. */
    private static volatile long missingUntil;
    /** Then it is not unpacked again each time that somebody asks. */
    private static boolean hasEmbeddedFailed;

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
     * gone when it has been loaded. From JDK 24 on the JVM warns when Java loads a library, or forbids it, unless
     * {@code --enable-native-access} allows it. Classes of this package that several class loaders have share an agent that the JVM
     * has loaded; one that Java loads is for the first class loader alone.
     *
     * <p>It may be called often. Where there is no agent it looks for one once a second, so that it finds one that is attached
     * later after a second at most; in between it answers from memory.
     *
     * @return the profiler; one that does nothing if there is no agent
     */
    public static Otlpprof getInstance() {
        boolean isKnown = !isFound && isMissing && System.nanoTime() - missingUntil < 0;
        return isKnown ? WITHOUT_AGENT : lookNow();
    }

    /** As {@link #getInstance()}, also if that has looked just now. */
    static Otlpprof lookNow() {
        Otlpprof found = look();
        if (found == WITH_AGENT) {
            isFound = true;
        } else {
            // The time first: whoever sees that it is missing sees until when.
            missingUntil = System.nanoTime() + MISSING_NS;
            isMissing = true;
        }
        return found;
    }

    private static Otlpprof look() {
        Otlpprof linked = linked();
        if (linked != null) {
            return linked;
        }
        // Newer JDKs warn of every attempt to load a library.
        String name = System.mapLibraryName("otlpprof");
        for (String folder : System.getProperty("java.library.path", "").split(File.pathSeparator)) {
            File library = new File(folder, name);
            if (library.isFile()) {
                return load(library.toPath());
            }
        }
        synchronized (Otlpprof.class) {
            linked = linked();
            if (linked != null || hasEmbeddedFailed) {
                return linked != null ? linked : WITHOUT_AGENT;
            }
            Otlpprof loaded = loaded(EmbeddedLibrary::load);
            hasEmbeddedFailed = loaded == WITHOUT_AGENT;
            return loaded;
        }
    }

    /**
     * The agent that is in the process, or else that of a library, which is then loaded, but not started. Where that fails
     * each call tries again.
     *
     * @param library the path of {@code libotlpprof.so}
     * @return the profiler; one that does nothing if the library cannot be loaded
     */
    public static Otlpprof getInstance(Path library) {
        Otlpprof found = load(library);
        if (found == WITH_AGENT) {
            isFound = true;
        }
        return found;
    }

    private static Otlpprof load(Path library) {
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
            return withoutAgent("its library was loaded for the classes of another class loader, " + other
                    + ", and serves them alone; one that -agentpath loads serves all");
        }
        try {
            load.run();
        } catch (UnsatisfiedLinkError e) {
            return withoutAgent(e.getMessage());
        } catch (IllegalCallerException e) {
            // JDKs from 24 on can be told to, and later ones may do so unasked (JEP 472).
            Module own = Otlpprof.class.getModule();
            return withoutAgent(e.getMessage() + "; the option --enable-native-access="
                    + (own.isNamed() ? own.getName() : "ALL-UNNAMED") + " of the JVM allows it");
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
     * <pre>{@code
     * System.out.println("profiled by otlpprof " + PROFILER.version());
     * }</pre>
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
     * @return whether it profiles now; false without the agent, and where {@code OTEL_SDK_DISABLED} or
     *     {@code -Dotel.sdk.disabled} is true
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
        if (problem.startsWith("disabled: ")) {
            return false;
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
     * <pre>{@code
     * runBenchmark();
     * PROFILER.flush();
     * }</pre>
     *
     * @return whether it is profiling
     */
    public boolean flush() {
        return available && Natives.flush0();
    }

    /**
     * Registers the calling thread to be sampled. With the option {@code filter=true} none but registered threads are
     * sampled: of all others' CPU time nothing is recorded, and how much that was is told by the profile's attributes
     * {@code otlpprof.handler.samples_filtered} and {@code otlpprof.handler.periods_filtered}. Without that option every
     * thread is sampled, registered or not. A thread is registered until it ends or {@link #removeThread()}, through all
     * sessions. A virtual thread registers itself, not its carrier.
     *
     * <pre>{@code
     * ThreadFactory factory = task -> new Thread(() -> {
     *     PROFILER.addThread();
     *     task.run();
     * });
     * }</pre>
     *
     * @return whether it is registered; false without the agent, or if nothing can be kept of this thread
     */
    public boolean addThread() {
        return available && Natives.setRegistered0(true);
    }

    /**
     * Takes the calling thread from the register again.
     *
     * <pre>{@code
     * PROFILER.addThread();
     * try {
     *     task.run();
     * } finally {
     *     PROFILER.removeThread();
     * }
     * }</pre>
     *
     * @return whether it is not registered now; false without the agent
     */
    public boolean removeThread() {
        return available && Natives.setRegistered0(false);
    }

    /**
     * Records that a request has ended, and what it was: the local root span's endpoint and operation. Whoever looks at
     * samples of a span finds what request it was part of, also where the endpoint was not yet known when they were taken.
     *
     * <p>It becomes a sample of a profile of type {@code trace-root} (sample type {@code trace_roots}, unit {@code count}),
     * with a link to the span and the attributes {@code trace_root.endpoint} and {@code trace_root.operation}. As all events,
     * it has the calling thread's name, id and context attributes besides. 65,536 different events of an interval are kept;
     * what is dropped is counted by {@code otlpprof.events.dropped}.
     *
     * <pre>{@code
     * PROFILER.recordTraceRoot("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "/cart/{id}", "GET");
     * }</pre>
     *
     * @param traceId 32 hexadecimal digits, not all zero; 16 are a trace id of 64 bits
     * @param spanId the root span's id: 16 hexadecimal digits, not all zero
     * @param endpoint for example a route
     * @param operation for example a method; may be null
     * @return whether it is recorded. If not, it does not profile, there are too many events, or an id is null or not of its
     *     form, which the agent's log says once, and {@code otlpprof.context.ids_refused} counts
     * @throws NullPointerException if the endpoint is null
     */
    public boolean recordTraceRoot(String traceId, String spanId, String endpoint, String operation) {
        Objects.requireNonNull(endpoint, "endpoint");
        if (!available) {
            return false;
        }
        TextIds ids = new TextIds();
        if (!ids.readTraceId(traceId) || !ids.readSpanId(spanId)) {
            if (traceId != null && spanId != null) {
                Refusal.TRACE_ROOT.count("recordTraceRoot", traceId, spanId);
            }
            return false;
        }
        return recordTraceRoot(ids.traceIdHigh, ids.traceIdLow, ids.spanId, endpoint, operation);
    }

    /**
     * The same with ids as numbers, big-endian.
     *
     * @param traceIdHigh the first half of the trace id
     * @param traceIdLow its second half; not both are zero
     * @param spanId the root span's id, not zero
     * @param endpoint for example a route
     * @param operation for example a method; may be null
     * @return as {@link #recordTraceRoot(String, String, String, String)}
     */
    public boolean recordTraceRoot(
            long traceIdHigh, long traceIdLow, long spanId, String endpoint, String operation) {
        Objects.requireNonNull(endpoint, "endpoint");
        if (!available || (traceIdHigh | traceIdLow) == 0 || spanId == 0) {
            return false;
        }
        String[] texts = {endpoint, operation, threadName()};
        return Natives.event0(
                Natives.TRACE_ROOT, texts, new long[] {0, traceIdHigh, traceIdLow, spanId, threadId(), -1});
    }

    /**
     * Records how long a task has waited in a queue before the calling thread began to run it.
     *
     * <p>It becomes part of two profiles of type {@code queue}: how many tasks have waited (sample type {@code tasks}), and
     * how long they did ({@code delay}, {@code nanoseconds}). Attributes: {@code queue.task}, {@code queue.scheduler} and
     * {@code queue.type} are the classes' names, {@code queue.origin} the name of the thread that submitted the task,
     * {@code queue.length} the largest power of two that is not above the length, or 0. Equal ones of an interval are summed;
     * otherwise as {@link #recordTraceRoot(String, String, String, String)}.
     *
     * <pre>{@code
     * long submitted = System.nanoTime();
     * Thread origin = Thread.currentThread();
     * pool.execute(() -> {
     *     PROFILER.recordQueueTime(submitted, System.nanoTime(), Checkout.class, pool.getClass(),
     *             pool.getQueue().getClass(), pool.getQueue().size(), origin);
     *     ...
     * });
     * }</pre>
     *
     * @param startNanos {@link System#nanoTime()} when the task was submitted
     * @param endNanos the same when it is run; where it is earlier, no time has passed
     * @param task the task's class
     * @param scheduler the class of the pool or executor
     * @param queueType the queue's class; may be null
     * @param queueLength how many tasks wait; negative if that is not known
     * @param origin the thread that submitted the task; may be null
     * @return whether it is recorded. If not, it does not profile, or there are too many events
     */
    public boolean recordQueueTime(
            long startNanos,
            long endNanos,
            Class<?> task,
            Class<?> scheduler,
            Class<?> queueType,
            int queueLength,
            Thread origin) {
        Objects.requireNonNull(task, "task");
        Objects.requireNonNull(scheduler, "scheduler");
        if (!available) {
            return false;
        }
        String[] texts = {
            scheduler.getName(),
            task.getName(),
            queueType == null ? null : queueType.getName(),
            origin == null ? null : origin.getName(),
            threadName()
        };
        int length = queueLength < 0 ? -1 : Integer.highestOneBit(queueLength);
        return Natives.event0(
                Natives.QUEUE, texts, new long[] {endNanos - startNanos, 0, 0, 0, threadId(), length});
    }

    /**
     * Records a stretch of time that has a name.
     *
     * <p>It becomes part of two profiles of type {@code event}: how many there were (sample type {@code events}), and how long
     * they took ({@code duration}, {@code nanoseconds}), with the attribute {@code event.name}. Equal ones of an interval are
     * summed; otherwise as {@link #recordTraceRoot(String, String, String, String)}, with the calling thread's span.
     *
     * @param name what it is called; few different names make small profiles
     * @param startNanos {@link System#nanoTime()} when it began
     * @param endNanos the same when it ended; where it is earlier, no time has passed
     * @return whether it is recorded. If not, it does not profile, or there are too many events
     */
    public boolean recordDuration(String name, long startNanos, long endNanos) {
        Objects.requireNonNull(name, "name");
        if (!available) {
            return false;
        }
        String[] texts = {name, threadName()};
        return Natives.event0(
                Natives.DURATION, texts, new long[] {endNanos - startNanos, 0, 0, 0, threadId(), -1});
    }

    /**
     * Begins a stretch of time that has a name: {@link #recordDuration} when it is closed.
     *
     * @param name what it is called
     * @return the event; without the agent one that records nothing
     */
    public DurationEvent openDuration(String name) {
        return new DurationEvent(this, Objects.requireNonNull(name, "name"));
    }

    /** The calling thread's name, as samples have it; null for a virtual thread. */
    private static String threadName() {
        Thread thread = Thread.currentThread();
        return isVirtual(thread) ? null : thread.getName();
    }

    /** Its id; negative for a virtual thread. */
    private static long threadId() {
        Thread thread = Thread.currentThread();
        return isVirtual(thread) ? -1 : thread.getId();
    }

    /** {@code Thread.isVirtual()} is not there before 21. Without continuations they are of the second class. */
    private static boolean isVirtual(Thread thread) {
        String name = thread.getClass().getName();
        return name.equals("java.lang.VirtualThread") || name.equals("java.lang.ThreadBuilders$BoundVirtualThread");
    }

    /**
     * What the profiler is doing.
     *
     * <pre>{@code
     * System.out.println(PROFILER.status());
     * }</pre>
     *
     * @return one line for people
     */
    public String status() {
        return available ? Natives.status0() : "the profiling agent is not in this process";
    }
}
