package programs;

import com.sun.management.ThreadMXBean;
import io.otlpprof.ContextScope;
import io.otlpprof.ContextSetter;
import io.otlpprof.ContextSnapshot;
import io.otlpprof.DurationEvent;
import io.otlpprof.Otlpprof;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.IntBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntConsumer;

/**
 * Checks the result of each call of the API, with right and wrong arguments: {@code ContextCalls WITH_AGENT
 * [overflows]}. Prints {@code done} if all results are as documented.
 */
public final class ContextCalls {
    static final String TRACE = "0af7651916cd43dd8448eb211c80319c";
    static final String SPAN = "b7ad6b7169203331";
    static final String NO_CONTEXT = "[; no span]";

    private ContextCalls() {}

    public static void main(String[] args) throws Exception {
        boolean withAgent = Boolean.parseBoolean(args[0]);
        if (args.length > 1) {
            List<String> names = List.of("rest_endpoint", "traceid", "spanid", "tenant");
            ContextSetter setter = new ContextSetter(Otlpprof.getInstance(), names);
            Thread shallow = new Thread(null, () -> overflows(setter), "shallow", 256 << 10);
            AtomicReference<Throwable> thrown = new AtomicReference<>();
            shallow.setUncaughtExceptionHandler((thread, e) -> thrown.set(e));
            shallow.start();
            shallow.join();
            expect(null, thrown.get());
            System.out.println("done");
            return;
        }
        Otlpprof profiler = Otlpprof.getInstance();
        expect(withAgent, profiler.isAvailable());
        expect(withAgent, Otlpprof.getInstance() == profiler && !profiler.version().isEmpty());
        if (!withAgent) {
            nothingHappens(profiler);
            looksAreSeldom();
        }
        names(profiler, withAgent);
        List<String> attributes = List.of("rest_endpoint", "traceid", "spanid", "tenant");
        ContextSetter setter = new ContextSetter(profiler, attributes);
        values(setter, withAgent);
        ContextMistakes.hold(profiler, setter, withAgent);
        ids(setter, withAgent);
        idsTakeNoRoom(setter, withAgent);
        threads(setter, withAgent);
        allocatesNothing(setter);
        System.out.println("done");
    }

    /** Calls the API without the agent, with right and wrong arguments. */
    private static void nothingHappens(Otlpprof profiler) {
        expect(false, profiler.start("cpu=1ms") || profiler.start("no such option"));
        expect(false, profiler.stop() || profiler.flush());
        expect(false, profiler.addThread() || profiler.removeThread());
        expect("the profiling agent is not in this process", profiler.status());
        expect("", profiler.version());
        expect(false, profiler.recordTraceRoot(TRACE, SPAN, "/cart/{id}", "GET"));
        expect(false, profiler.recordTraceRoot("no trace", null, "/cart/{id}", null));
        expect(false, profiler.recordTraceRoot(1, 2, 3, "/cart/{id}", "GET"));
        Class<?> type = ContextCalls.class;
        expect(
                false,
                profiler.recordQueueTime(1, 2, type, Thread.class, List.class, 3, Thread.currentThread()));
        expect(false, profiler.recordQueueTime(2, 1, type, Thread.class, null, -1, null));
        expect(false, profiler.recordDuration("checkout", 1, 2));
        DurationEvent event = profiler.openDuration("checkout");
        event.close();
        event.close();
        expectThrown(NullPointerException.class, "options", () -> profiler.start(null));
        expectThrown(
                NullPointerException.class,
                "endpoint",
                () -> profiler.recordTraceRoot(TRACE, SPAN, null, "GET"));
        expectThrown(NullPointerException.class, "name", () -> profiler.recordDuration(null, 1, 2));
        expectThrown(NullPointerException.class, "name", () -> profiler.openDuration(null));
        expectThrown(
                NullPointerException.class,
                "task",
                () -> profiler.recordQueueTime(1, 2, null, type, null, 0, null));
    }

    /** However often the program asks for the agent, a missing agent is looked for only once a second. */
    private static void looksAreSeldom() {
        Properties own = System.getProperties();
        AtomicInteger looks = new AtomicInteger();
        Properties counting = new Properties() {
            private static final long serialVersionUID = 1;

            @Override
            public String getProperty(String key, String otherwise) {
                if (key.equals("java.library.path")) {
                    looks.incrementAndGet();
                }
                return super.getProperty(key, otherwise);
            }
        };
        counting.putAll(own);
        System.setProperties(counting);
        long start = System.nanoTime();
        for (int i = 0; i < 100_000; i++) {
            expect(false, Otlpprof.getInstance().isAvailable());
        }
        long seconds = (System.nanoTime() - start) / 1_000_000_000;
        System.setProperties(own);
        if (looks.get() > seconds + 2) {
            throw new AssertionError(looks + " looks in " + seconds + " s");
        }
    }

    private static void names(Otlpprof profiler, boolean withAgent) {
        List<String> nine = new ArrayList<>(ContextMistakes.SLOTS.subList(0, 7));
        nine.add("traceid");
        nine.add("spanid");
        ContextSetter setter = new ContextSetter(profiler, nine);
        for (int i = 0; i < 9; i++) {
            expect(i, setter.offsetOf(nine.get(i)));
        }
        expectThrown(IllegalArgumentException.class, "name9", () -> setter.offsetOf("name9"));
        expectThrown(IllegalArgumentException.class, "name9", () -> setter.setAttribute("name9", "x"));
        expectThrown(IllegalArgumentException.class, "name9", () -> clear(setter, "name9"));
        List<String> ten = new ArrayList<>(nine);
        ten.add("tenth");
        expectThrown(
                IllegalArgumentException.class,
                "9 attributes at most",
                () -> new ContextSetter(profiler, ten));
        for (List<String> bad : List.of(List.of(""), List.of("a", "a"))) {
            expectThrown(
                    IllegalArgumentException.class,
                    "must be different",
                    () -> new ContextSetter(profiler, bad));
        }
        if (withAgent) {
            expectThrown(
                    IllegalArgumentException.class,
                    "1 to 255 bytes",
                    () -> new ContextSetter(profiler, List.of("n".repeat(256))));
            // Two more names fill all nine slots. No other setter gets a tenth.
            ContextSetter last = new ContextSetter(profiler, List.of("name7", "name8"));
            expect(true, last.setAttribute("name8", "x"));
            last.clear();
            expectThrown(
                    IllegalArgumentException.class,
                    "rest_endpoint, tenant, name2",
                    () -> new ContextSetter(profiler, List.of("name9")));
            // Names may contain any characters.
            expectThrown(
                    IllegalArgumentException.class,
                    "name\ud834\udd1e",
                    () -> new ContextSetter(profiler, List.of("name9")));
        }
    }

    private static void values(ContextSetter setter, boolean withAgent) {
        expect(withAgent, setter.setAttribute(0, "/checkout"));
        expect(withAgent, setter.setAttribute(0, ""));
        expect(withAgent, setter.setAttribute("rest_endpoint", "/checkout"));
        expect(withAgent, setter.setAttribute(0, null));
        setter.clearAttribute(0);
        setter.clearAttribute("tenant");
        expect(withAgent, setter.setAttribute(3, "t".repeat(255)));
        expect(withAgent, setter.setAttribute(3, "\u20ac".repeat(85)));
        expect(255, "\u20ac".repeat(85).getBytes(StandardCharsets.UTF_8).length);
        setter.clear();
    }

    private static void ids(ContextSetter setter, boolean withAgent) throws Exception {
        expect(withAgent, setter.setTraceContext(TRACE, SPAN, 1));
        expect(withAgent, setter.setTraceContext(TRACE.toUpperCase(), SPAN.toUpperCase(), -1));
        expect(withAgent, setter.setTraceContext(1, 0, 1, 0) && setter.setTraceContext(0, 1, 1, 0));
        String zeros = "0".repeat(32);
        String[][] bad = {
            {null, SPAN}, {TRACE, null}, {TRACE + "0", SPAN}, {TRACE.substring(1), SPAN}, {TRACE, SPAN + "0"},
            {"", ""}, {TRACE.replace('a', 'g'), SPAN}, {TRACE, "b7ad6b716920333\u0131"},
            {TRACE, "b7ad6b716920333/"},
            {zeros, SPAN}, {TRACE, zeros.substring(16)}
        };
        for (String[] ids : bad) {
            setter.setTraceContext(TRACE, SPAN, 1);
            expect(false, setter.setTraceContext(ids[0], ids[1], 1));
            expect(false, hasSpan(setter));
        }
        expect(false, setter.setTraceContext(0, 0, 1, 0) || setter.setTraceContext(1, 1, 0, 0));
        everyCharacter(setter, withAgent);
        aChildKeepsTheFlags(setter, withAgent);
        withAnAttribute(setter, withAgent);
        // The span is set in two parts, the trace first.
        expect(withAgent, setter.setAttribute("traceid", TRACE));
        expect(false, hasSpan(setter));
        expect(withAgent, setter.setAttribute("spanid", SPAN));
        expect(withAgent, hasSpan(setter));
        expect(withAgent, setter.setAttribute("traceid", TRACE) && hasSpan(setter));
        expect(withAgent, setter.setAttribute("traceid", TRACE.replace('0', '1')));
        expect(false, hasSpan(setter));
        expect(withAgent, setter.setAttribute("spanid", SPAN) && hasSpan(setter));
        expect(false, setter.setAttribute("spanid", "no span") || hasSpan(setter));
        setter.clear();
        expect(withAgent, setter.setAttribute("spanid", SPAN));
        expect(false, hasSpan(setter));
        expect(withAgent, setter.setAttribute("traceid", TRACE) && hasSpan(setter));
        setter.clearAttribute("spanid");
        expect(false, hasSpan(setter));
        expect(false, setter.setAttribute("traceid", "no trace"));
        setter.clear();
    }

    /**
     * Ids that are set as attributes are not stored as values. As values they would fill the
     * dictionary, which would then have to reclaim some.
     */
    private static void idsTakeNoRoom(ContextSetter setter, boolean withAgent) {
        for (long i = 0; i < 70_000; i++) {
            String digits = Long.toHexString(i | 1L << 60);
            expect(
                    withAgent,
                    setter.setAttribute("traceid", digits + digits) && setter.setAttribute("spanid", digits));
        }
        setter.clear();
    }

    /**
     * Another span of the same trace keeps the sampled flag. For a span of another trace the flag is not
     * known.
     */
    private static void aChildKeepsTheFlags(ContextSetter setter, boolean withAgent) throws Exception {
        setter.setTraceContext(TRACE, SPAN, 1);
        setter.setAttribute("spanid", SPAN.replace('7', '8'));
        expect(withAgent ? 1 : 0, flags(setter));
        setter.setAttribute("traceid", TRACE);
        expect(withAgent ? 1 : 0, flags(setter));
        setter.setAttribute("traceid", TRACE.replace('0', '1'));
        setter.setAttribute("spanid", SPAN);
        expect(0, flags(setter));
        setter.clear();
    }

    /** A span and an attribute set by one call have the same effect as if set by two. */
    private static void withAnAttribute(ContextSetter setter, boolean withAgent) throws Exception {
        expect(withAgent, setter.setTraceContext(1, 2, 3, 1, 3, "both") && hasSpan(setter));
        String both = setter.copy().toString();
        setter.clear();
        setter.setTraceContext(1, 2, 3, 1);
        setter.setAttribute(3, "both");
        expect(setter.copy().toString(), both);
        expect(false, setter.setTraceContext(1, 2, 0, 1, 3, "no span") || hasSpan(setter));
        setter.setTraceContext(1, 2, 3, 1);
        expect(false, setter.setTraceContext(1, 2, 3, 1, 3, "t".repeat(256)));
        expect(withAgent, hasSpan(setter) && setter.setTraceContext(1, 2, 3, 1, 3, null));
        expectThrown(IndexOutOfBoundsException.class, "", () -> setter.setTraceContext(1, 2, 3, 1, 4, "x"));
        expectThrown(
                IndexOutOfBoundsException.class, "", () -> setter.setTraceContext(TRACE, SPAN, 1, 4, "x"));
        if (withAgent) {
            int id = setter.offsetOf("spanid");
            expectThrown(
                    IllegalArgumentException.class,
                    "spanid",
                    () -> setter.setTraceContext(1, 2, 3, 1, id, SPAN));
        }
        expect(withAgent, setter.setTraceContext(TRACE, SPAN, 1, 3, "as text") && hasSpan(setter));
        String asText = setter.copy().toString();
        expect(withAgent, asText.contains("as text") && asText.contains(TRACE + "-" + SPAN));
        for (String noSpan : new String[] {null, "", SPAN + "0", SPAN.replace('b', 'g'), "0".repeat(16)}) {
            setter.setTraceContext(TRACE, SPAN, 1);
            expect(false, setter.setTraceContext(TRACE, noSpan, 1, 3, "alone") || hasSpan(setter));
            expect(withAgent, setter.copy().toString().contains("alone"));
        }
        setter.setTraceContext(TRACE, SPAN, 1);
        expect(false, setter.setTraceContext(null, SPAN, 1, 3, null) || hasSpan(setter));
        expect(false, setter.copy().toString().contains("alone"));
        setter.clear();
    }

    private static int flags(ContextSetter setter) throws ReflectiveOperationException {
        Field flags = ContextSnapshot.class.getDeclaredField("flags");
        flags.setAccessible(true);
        return flags.getInt(setter.copy());
    }

    /** Every character at every place of an id is either accepted as a digit or refused. */
    private static void everyCharacter(ContextSetter setter, boolean withAgent) {
        for (int place = 0; place < 16; place++) {
            for (int character = 0; character < 0x300; character++) {
                StringBuilder id = new StringBuilder(SPAN);
                id.setCharAt(place, (char) character);
                boolean isDigit = character < 128 && Character.digit(character, 16) >= 0;
                expect(withAgent && isDigit, setter.setTraceContext(TRACE, id.toString(), 1));
                if (withAgent && isDigit) {
                    String expected = TRACE + "-" + id.toString().toLowerCase() + "]";
                    expect(true, setter.copy().toString().endsWith(expected));
                }
            }
        }
    }

    /**
     * A value that was set before is set again without allocating an object, by each kind of call. So the
     * call does not enter native code either, since a look-up in the dictionary makes an object of its
     * answer.
     */
    private static void allocatesNothing(ContextSetter setter) {
        String[] values = new String[8];
        String[] spans = new String[values.length];
        for (int i = 0; i < values.length; i++) {
            values[i] = "/value" + i;
            spans[i] = SPAN.substring(1) + i;
        }
        setter.setAttribute(0, "/copied");
        setter.setTraceContext(TRACE, SPAN, 1);
        ContextSnapshot snapshot = setter.copy();
        expectNothingAllocated("sets by offset", i -> setter.setAttribute(0, values[i & 7]));
        expectNothingAllocated("sets by name", i -> setter.setAttribute("tenant", values[i & 7]));
        expectNothingAllocated("sets of null", i -> setter.setAttribute(0, null));
        expectNothingAllocated("clears of an attribute", i -> setter.clearAttribute(0));
        expectNothingAllocated("clears by name", i -> setter.clearAttribute("tenant"));
        expectNothingAllocated("spans as text", i -> setter.setTraceContext(TRACE, spans[i & 7], i));
        expectNothingAllocated("spans as numbers", i -> setter.setTraceContext(i, 1, i | 1, 1));
        expectNothingAllocated("both", i -> setter.setTraceContext(i, 1, i | 1, 1, 0, values[i & 7]));
        expectNothingAllocated(
                "both as text", i -> setter.setTraceContext(TRACE, spans[i & 7], 1, 0, values[i & 7]));
        expectNothingAllocated("span ids alone", i -> setter.setAttribute("spanid", spans[i & 7]));
        expectNothingAllocated("clears of a span", i -> setter.clearTraceContext());
        expectNothingAllocated("restores", i -> setter.restore(snapshot));
        expectNothingAllocated("clears", i -> setter.clear());
    }

    private static void expectNothingAllocated(String what, IntConsumer call) {
        repeat(call, 20_000);
        long allocated = allocated(call);
        // The VM may allocate an object or two while it compiles the called methods.
        for (int i = 0; i < 4 && allocated != 0; i++) {
            allocated = allocated(call);
        }
        if (allocated != 0) {
            throw new AssertionError("a million " + what + " have allocated " + allocated + " bytes");
        }
    }

    /** The bytes of Java objects that a million calls allocate. */
    private static long allocated(IntConsumer call) {
        ThreadMXBean bean = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long thread = Thread.currentThread().getId();
        long first = bean.getThreadAllocatedBytes(thread);
        long second = bean.getThreadAllocatedBytes(thread);
        repeat(call, 1_000_000);
        long third = bean.getThreadAllocatedBytes(thread);
        // Each reading includes the objects that the bean itself has allocated.
        return third - second - (second - first);
    }

    private static void repeat(IntConsumer call, int times) {
        for (int i = 0; i < times; i++) {
            call.accept(i);
        }
    }

    /**
     * Wherever in a setter the stack overflows, the thread then has the previous context, the new one, or
     * none, and the next label is set as usual.
     */
    private static void overflows(ContextSetter setter) {
        setContext(setter, 1);
        ContextSnapshot after = setter.copy();
        setContext(setter, 0);
        ContextSnapshot before = setter.copy();
        setter.clearTraceContext();
        String withoutSpan = setter.copy().toString();
        List<Runnable> calls = List.of(
                () -> setter.restore(after),
                () -> setter.setTraceContext(2, 2, 2, 1, 0, "/checkout1"),
                () -> setter.setTraceContext(TRACE, SPAN, 1, 0, "/checkout1"),
                () -> setter.setTraceContext(3, 3, 3, 1),
                () -> setter.setAttribute(0, "/checkout1"));
        for (Runnable call : calls) {
            setter.restore(before);
            call.run();
            String whole = setter.copy().toString();
            int interrupted = 0;
            // Frames of two sizes let the stack overflow at different places of the called methods.
            int most = depth();
            for (int round = 0; round < 1000; round++) {
                setter.restore(before);
                try {
                    descend(most - round / 10, round % 10, call);
                } catch (StackOverflowError e) {
                    interrupted++;
                }
                String left = setter.copy().toString();
                // A call that sets only a span may leave none.
                boolean isAlone = left.equals(withoutSpan) && call == calls.get(3);
                if (!isAlone && !List.of(before.toString(), whole, NO_CONTEXT).contains(left)) {
                    throw new AssertionError(left + ", neither " + before + " nor " + whole);
                }
                expect(true, setter.setAttribute(0, "/checkout0"));
                expect(true, isValid());
            }
            expect(true, interrupted > 0);
        }
    }

    private static void setContext(ContextSetter setter, int which) {
        setter.setAttribute(3, "tenant" + which);
        setter.setTraceContext(which + 1, which + 1, which + 1, 1, 0, "/checkout" + which);
    }

    private static int reached;

    /** The greatest depth that {@link #descend} reaches. */
    private static int depth() {
        try {
            descend(Integer.MAX_VALUE, 0, () -> {});
        } catch (StackOverflowError e) {
            return reached;
        }
        throw new AssertionError("no end");
    }

    private static void descend(int frames, int wideFrames, Runnable call) {
        if (frames > 0) {
            reached = Integer.MAX_VALUE - frames;
            descend(frames - 1, wideFrames, call);
        } else if (wideFrames > 0) {
            descendWide(wideFrames, 1, 2, 3, call);
        } else {
            call.run();
        }
    }

    private static void descendWide(int frames, long first, long second, long third, Runnable call) {
        if (frames > 0) {
            descendWide(frames - 1, first, second, third, call);
        } else {
            call.run();
        }
    }

    /** Whether a handler that interrupts now would find the block valid. */
    private static boolean isValid() {
        return ownBlock().get(6) != 0;
    }

    /** The calling thread's block. It is read by reflection, since no code outside the API can obtain it. */
    private static IntBuffer ownBlock() {
        try {
            Class<?> type = Class.forName("io.otlpprof.ThreadContext");
            Method current = type.getDeclaredMethod("current");
            Field ints = type.getDeclaredField("ints");
            current.setAccessible(true);
            ints.setAccessible(true);
            return (IntBuffer) ints.get(current.invoke(null));
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    private static boolean hasSpan(ContextSetter setter) {
        return !setter.copy().toString().endsWith("; no span]");
    }

    private static void threads(ContextSetter setter, boolean withAgent) throws Exception {
        setter.setAttribute(0, "/main");
        setter.setTraceContext(TRACE, SPAN, 1);
        ContextSnapshot snapshot = setter.copy();
        setter.setAttribute(0, "/other");
        expect(withAgent ? "/main" : null, endpoint(snapshot));
        ExecutorService first = Executors.newSingleThreadExecutor();
        ExecutorService second = Executors.newSingleThreadExecutor();
        expect(null, first.submit(() -> endpoint(setter.copy())).get());
        expect(withAgent, first.submit(() -> setter.restore(snapshot)).get());
        expect(withAgent ? "/main" : null, first.submit(() -> endpoint(setter.copy())).get());
        expect(null, second.submit(() -> endpoint(setter.copy())).get());

        // A scope that another thread closes changes neither thread's context.
        AtomicReference<ContextScope> scope = new AtomicReference<>();
        first.submit(() -> scope.set(setter.openScope())).get();
        first.submit(() -> setter.setAttribute(0, "/inner")).get();
        second.submit(() -> setter.setAttribute(0, "/second")).get();
        second.submit(() -> scope.get().close()).get();
        expect(withAgent ? "/second" : null, second.submit(() -> endpoint(setter.copy())).get());
        expect(withAgent ? "/inner" : null, first.submit(() -> endpoint(setter.copy())).get());
        first.submit(() -> scope.get().close()).get();
        expect(withAgent ? "/main" : null, first.submit(() -> endpoint(setter.copy())).get());
        first.submit(() -> setter.setAttribute(0, "/again")).get();
        first.submit(() -> scope.get().close()).get();
        expect(withAgent ? "/again" : null, first.submit(() -> endpoint(setter.copy())).get());
        // A later thread that reuses the memory is not affected by objects of the ended thread.
        first.submit(() -> setter.setTraceContext(TRACE, SPAN, 1)).get();
        first.submit(() -> scope.set(setter.openScope())).get();
        ContextSnapshot left = first.submit(setter::copy).get();
        IntBuffer block = withAgent ? first.submit(ContextCalls::ownBlock).get() : null;
        first.shutdown();
        expect(true, first.awaitTermination(10, TimeUnit.SECONDS));
        ExecutorService third = heir(block, setter);
        expect(NO_CONTEXT, third.submit(() -> setter.copy().toString()).get());
        third.submit(() -> setter.setAttribute(0, "/third")).get();
        scope.get().close();
        third.submit(() -> scope.get().close()).get();
        expect(withAgent ? "/third" : null, third.submit(() -> endpoint(setter.copy())).get());
        expect(withAgent ? "/again" : null, endpoint(left));
        third.shutdown();
        second.shutdown();
        expect(withAgent ? "/other" : null, endpoint(setter.copy()));
    }

    /** A thread that has been assigned the block of an ended thread, and has no context. */
    private static ExecutorService heir(IntBuffer block, ContextSetter setter) throws Exception {
        // Threads that got another block keep it, so that the next thread is not assigned the same one.
        List<ExecutorService> others = new ArrayList<>();
        try {
            for (int i = 0; i < 100; i++) {
                ExecutorService thread = Executors.newSingleThreadExecutor();
                if (block == null || thread.submit(() -> isOwn(block, setter)).get()) {
                    return thread;
                }
                others.add(thread);
                // The executor's worker has ended, but its kernel thread may not have yet.
                Thread.sleep(100);
            }
            throw new AssertionError("nobody has been given the block");
        } finally {
            others.forEach(ExecutorService::shutdown);
        }
    }

    /** Whether a block is the calling thread's: it then shows the ids that the thread sets. */
    private static boolean isOwn(IntBuffer block, ContextSetter setter) {
        expect(NO_CONTEXT, setter.copy().toString());
        setter.setTraceContext(1, 2, System.nanoTime() | 1L << 62, 1);
        IntBuffer own = ownBlock();
        boolean isOwn = block.get(4) == own.get(4) && block.get(5) == own.get(5);
        setter.clear();
        return isOwn;
    }

    /** The value of the first slot, which belongs to the first attribute that the program has named. */
    private static String endpoint(ContextSnapshot snapshot) {
        String value = snapshot.toString().split("[\\[,;]")[1];
        return value.isEmpty() || value.equals("null") ? null : value;
    }

    static Object clear(ContextSetter setter, String name) {
        setter.clearAttribute(name);
        return null;
    }

    static void expect(Object expected, Object found) {
        if (expected == null ? found != null : !expected.equals(found)) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }

    static void expectThrown(Class<?> type, String part, Callable<?> call) {
        try {
            call.call();
        } catch (Exception e) {
            if (type.isInstance(e) && String.valueOf(e.getMessage()).contains(part)) {
                return;
            }
            throw new AssertionError("another exception", e);
        }
        throw new AssertionError("no " + type);
    }
}
