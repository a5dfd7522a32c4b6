package io.otlpprof;

import java.io.File;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The profiler in this process.
 *
 * <p>The agent may have been loaded at the JVM's start ({@code
 * -agentpath:/path/to/libotlpprof.so=file=app.otlp} or {@code
 * -javaagent:/path/to/otlpprof.jar=file=app.otlp}), attached later, or {@link #getInstance()} loads it.
 * Without the agent every call does nothing, at little cost, and one warning in the log {@code io.otlpprof}
 * says so.
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

    /**
     * The time for which a failed search is not repeated, in ns: a search throws an exception, and looks for
     * files.
     */
    private static final long MISSING_NS = 1_000_000_000;

    private static final AtomicBoolean SAID = new AtomicBoolean();
    /** Whether the agent has been found. It then stays. */
    private static volatile boolean isFound;
    /** Whether a search has found no agent; valid until {@link #missingUntil}. */
    private static volatile boolean isMissing;
    /** A time by {@link System#nanoTime()}. */
    private static volatile long missingUntil;
    /** Whether loading the embedded library has failed. It is then not unpacked again with each search. */
    private static boolean hasEmbeddedFailed;

    private static final Otlpprof WITH_AGENT = new Otlpprof(true);
    private static final Otlpprof WITHOUT_AGENT = new Otlpprof(false);

    private final boolean available;

    private Otlpprof(boolean available) {
        this.available = available;
    }

    /**
     * Returns the profiler of the agent in this process. If there is none, the library {@code libotlpprof.so}
     * of {@code java.library.path} is loaded or, if there is none, the one in the jar of these classes. The
     * agent is then loaded, but not started.
     *
     * <p>The library of the jar is unpacked to a file in {@code java.io.tmpdir} that only this user can read,
     * and that is deleted when it has been loaded. From JDK 24 on the JVM warns when Java loads a library, or
     * forbids it, unless {@code --enable-native-access} allows it. If several class loaders have classes of
     * this package, they share an agent that the JVM has loaded. A library that Java loads belongs to the
     * first class loader only.
     *
     * <p>This method may be called often. If there is no agent it searches at most once a second, so that it
     * finds an agent that is attached later within a second; in between it answers from memory.
     *
     * @return the profiler; one that does nothing if there is no agent
     */
    public static Otlpprof getInstance() {
        boolean isKnown = !isFound && isMissing && System.nanoTime() - missingUntil < 0;
        return isKnown ? WITHOUT_AGENT : lookNow();
    }

    /** As {@link #getInstance()}, but searches in any case. */
    static Otlpprof lookNow() {
        Otlpprof found = look();
        if (found == WITH_AGENT) {
            isFound = true;
        } else {
            // The time is stored first, so that a thread that sees the flag sees the time.
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
        // Libraries are searched for as files, since newer JDKs warn of every attempt to load a library.
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
     * Returns the profiler of the agent in this process. If there is none, this library is loaded, but not
     * started. After a failure each call tries again.
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
            // A second copy of the library would have contexts that the first copy's samples do not see.
            return withoutAgent("its library was loaded for the classes of another class loader, " + other
                    + ", and serves only them; a library that -agentpath loads serves all");
        }
        try {
            load.run();
        } catch (UnsatisfiedLinkError e) {
            return withoutAgent(e.getMessage());
        } catch (IllegalCallerException e) {
            // An option of JDKs from 24 on forbids loading a library, and later JDKs may forbid it by default
            // (JEP 472).
            Module own = Otlpprof.class.getModule();
            return withoutAgent(e.getMessage() + "; the option --enable-native-access="
                    + (own.isNamed() ? own.getName() : "ALL-UNNAMED") + " of the JVM allows it");
        }
        System.setProperty(LOADED, String.valueOf(Otlpprof.class.getClassLoader()));
        Otlpprof linked = linked();
        return linked != null ? linked : withoutAgent("another library was loaded");
    }

    /**
     * Returns the profiler of the agent's library, if the library is in the process and can be called from
     * here; null if not.
     */
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
        return withoutAgent("the library, " + version + ", has interface " + interfaceNumber
                + ", but these classes have " + Natives.ABI + "; use both from one version");
    }

    private static Otlpprof withoutAgent(String reason) {
        if (SAID.compareAndSet(false, true)) {
            // The logger is created only when it is needed, since that takes a moment.
            System.getLogger("io.otlpprof")
                    .log(
                            Level.WARNING,
                            "the profiling agent is not in this process ({0}):"
                                    + " calls of io.otlpprof do nothing",
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
     * @param options the options in the form that follows the library's name in {@code -agentpath}; may be
     *     empty
     * @return whether profiling has started; false without the agent, or if {@code OTEL_SDK_DISABLED} or
     *     {@code -Dotel.sdk.disabled} is true
     * @throws IllegalArgumentException if an option is wrong; nothing has been started
     * @throws IllegalStateException if the agent is profiling already, or cannot profile; nothing has changed
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
     * Stops profiling. Pending messages are sent first, which takes at most three seconds.
     *
     * @return whether the agent was profiling
     */
    public boolean stop() {
        return available && Natives.stop0();
    }

    /**
     * Sends the samples recorded so far.
     *
     * <pre>{@code
     * runBenchmark();
     * PROFILER.flush();
     * }</pre>
     *
     * @return whether the agent is profiling
     */
    public boolean flush() {
        return available && Natives.flush0();
    }

    /**
     * Registers the calling thread for sampling. With the option {@code filter=true} only registered threads
     * are sampled. Of other threads nothing is recorded; the profile's attributes {@code
     * otlpprof.handler.samples_filtered} and {@code otlpprof.handler.periods_filtered} count their samples
     * and periods. Without that option every thread is sampled, registered or not. A thread stays registered,
     * through all sessions, until it ends or calls {@link #removeThread()}. A virtual thread registers
     * itself, not its carrier.
     *
     * <pre>{@code
     * ThreadFactory factory = task -> new Thread(() -> {
     *     PROFILER.addThread();
     *     task.run();
     * });
     * }</pre>
     *
     * @return whether the thread is registered; false without the agent, or if no state can be kept for this
     *     thread
     */
    public boolean addThread() {
        return available && Natives.setRegistered0(true);
    }

    /**
     * Unregisters the calling thread.
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
     * @return whether the thread is now unregistered; false without the agent
     */
    public boolean removeThread() {
        return available && Natives.setRegistered0(false);
    }

    /**
     * Records the end of a request, with the endpoint and operation of its local root span. Samples of a span
     * can then be attributed to the request that the span was part of, even if the endpoint was not yet known
     * when they were taken.
     *
     * <p>The event becomes a sample of a profile of type {@code trace-root} (sample type {@code trace_roots},
     * unit {@code count}), with a link to the span and the attributes {@code trace_root.endpoint} and {@code
     * trace_root.operation}. Like all events, it also has the calling thread's name, id and context
     * attributes. At most 65,536 different events of an interval are kept; {@code otlpprof.events.dropped}
     * counts the dropped ones.
     *
     * <pre>{@code
     * PROFILER.recordTraceRoot("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "/cart/{id}", "GET");
     * }</pre>
     *
     * @param traceId 32 hexadecimal digits, not all zero; 16 digits are a trace id of 64 bits
     * @param spanId the root span's id: 16 hexadecimal digits, not all zero
     * @param endpoint for example a route
     * @param operation for example a method; may be null
     * @return whether the event is recorded. If not, the agent is not profiling, there are too many events,
     *     or an id is null or malformed, which the agent logs once and counts in {@code
     *     otlpprof.context.ids_refused}
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
     * Records the end of a request, with big-endian numbers as ids.
     *
     * @param traceIdHigh the first half of the trace id
     * @param traceIdLow the second half of the trace id; one of the halves is not zero
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
     * Records the time for which a task has waited in a queue before the calling thread began to run it.
     *
     * <p>The event becomes part of two profiles of type {@code queue}: the number of tasks that have waited
     * (sample type {@code tasks}), and the duration of their waits ({@code delay}, {@code nanoseconds}).
     * Attributes: {@code queue.task}, {@code queue.scheduler} and {@code queue.type} are the classes' names,
     * {@code queue.origin} is the name of the thread that submitted the task, and {@code queue.length} is the
     * queue's length, rounded down to a power of two or 0. Equal events of an interval are summed. Other
     * properties are as for {@link #recordTraceRoot(String, String, String, String)}.
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
     * @param endNanos {@link System#nanoTime()} when the task is run; if it is earlier than the start, the
     *     duration is 0
     * @param task the task's class
     * @param scheduler the class of the pool or executor
     * @param queueType the queue's class; may be null
     * @param queueLength the number of tasks that wait; negative if unknown
     * @param origin the thread that submitted the task; may be null
     * @return whether the event is recorded. If not, the agent is not profiling, or there are too many events
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
     * Records a named stretch of time.
     *
     * <p>The event becomes part of two profiles of type {@code event}: the number of events (sample type
     * {@code events}), and their duration ({@code duration}, {@code nanoseconds}), with the attribute {@code
     * event.name}. Equal events of an interval are summed. Other properties are as for {@link
     * #recordTraceRoot(String, String, String, String)}, with the calling thread's span.
     *
     * @param name the event's name; few different names make small profiles
     * @param startNanos {@link System#nanoTime()} when the stretch began
     * @param endNanos {@link System#nanoTime()} when it ended; if it is earlier than the start, the duration
     *     is 0
     * @return whether the event is recorded. If not, the agent is not profiling, or there are too many events
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
     * Begins a named stretch of time. Closing the event records it as {@link #recordDuration} does.
     *
     * @param name the event's name
     * @return the event; without the agent one that records nothing
     */
    public DurationEvent openDuration(String name) {
        return new DurationEvent(this, Objects.requireNonNull(name, "name"));
    }

    /** Returns the calling thread's name, in the form that samples have; null for a virtual thread. */
    private static String threadName() {
        Thread thread = Thread.currentThread();
        return isVirtual(thread) ? null : thread.getName();
    }

    /** Returns the calling thread's id; a negative number for a virtual thread. */
    private static long threadId() {
        Thread thread = Thread.currentThread();
        return isVirtual(thread) ? -1 : thread.getId();
    }

    /**
     * {@code Thread.isVirtual()} exists only from 21 on. Without continuations, virtual threads have the
     * second class.
     */
    private static boolean isVirtual(Thread thread) {
        String name = thread.getClass().getName();
        return name.equals("java.lang.VirtualThread")
                || name.equals("java.lang.ThreadBuilders$BoundVirtualThread");
    }

    /**
     * Describes what the profiler is doing.
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
