package programs;

import static programs.ContextCalls.NO_CONTEXT;
import static programs.ContextCalls.SPAN;
import static programs.ContextCalls.TRACE;
import static programs.ContextCalls.expect;
import static programs.ContextCalls.expectThrown;

import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;

/** Checks the content of a thread's whole context, with a value in every slot, after wrong calls. */
final class ContextMistakes {
    /** The names of all attributes that the process has in the end, in the order of their slots. */
    static final List<String> SLOTS = List.of(
            "rest_endpoint",
            "tenant",
            "name2",
            "name3",
            "name4",
            "name5",
            "name\ud834\udd1e",
            "name7",
            "name8");

    private ContextMistakes() {}

    /** A wrong call changes nothing. A refused value empties its own slot and no other. */
    static void hold(Otlpprof profiler, ContextSetter setter, boolean withAgent) {
        ContextSetter all = new ContextSetter(profiler, SLOTS);
        for (int offset : new int[] {-1, 4, 9, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
            Class<?> type = IndexOutOfBoundsException.class;
            expectUnchanged(all, type, "", () -> setter.setAttribute(offset, "x"));
            expectUnchanged(all, type, "", () -> setter.setAttribute(offset, null));
            expectUnchanged(all, type, "", () -> clear(setter, offset));
            expectUnchanged(all, type, "", () -> setter.setTraceContext(1, 2, 3, 1, offset, "x"));
            expectUnchanged(all, type, "", () -> setter.setTraceContext(TRACE, SPAN, 1, offset, "x"));
        }
        expectUnchanged(all, IndexOutOfBoundsException.class, "", () -> all.setAttribute(SLOTS.size(), "x"));
        for (String name : new String[] {"name10", "", "Tenant", null}) {
            Class<?> type = IllegalArgumentException.class;
            expectUnchanged(all, type, "no attribute of this setter", () -> setter.offsetOf(name));
            expectUnchanged(all, type, "no attribute of this setter", () -> setter.setAttribute(name, "x"));
            expectUnchanged(all, type, "no attribute of this setter", () -> clear(setter, name));
        }
        List<String> withNull = Arrays.asList("rest_endpoint", null);
        expectUnchanged(all, NullPointerException.class, "name", () -> new ContextSetter(profiler, withNull));
        expectUnchanged(all, NullPointerException.class, "", () -> new ContextSetter(profiler, null));
        expectUnchanged(all, NullPointerException.class, "", () -> new ContextSetter(null, SLOTS));
        expectUnchanged(all, NullPointerException.class, "snapshot", () -> setter.restore(null));
        if (withAgent) {
            int id = setter.offsetOf("traceid");
            Class<?> type = IllegalArgumentException.class;
            expectUnchanged(all, type, "traceid", () -> setter.setTraceContext(1, 2, 3, 1, id, TRACE));
            expectUnchanged(all, type, "", () -> new ContextSetter(profiler, List.of("tenant", "a tenth")));
        }
        for (int i = 0; i < SLOTS.size(); i++) {
            int offset = i;
            String name = SLOTS.get(i);
            for (String tooLong : List.of("t".repeat(256), "\u20ac".repeat(85) + "t", "t".repeat(100_000))) {
                expectEmptied(all, offset, false, () -> all.setAttribute(offset, tooLong));
                expectEmptied(all, offset, false, () -> all.setAttribute(name, tooLong));
                expectEmptied(all, offset, false, () -> all.setTraceContext(TRACE, SPAN, 1, offset, tooLong));
            }
            expectEmptied(all, offset, withAgent, () -> all.setAttribute(offset, null));
            expectEmptied(all, offset, withAgent, () -> all.setAttribute(name, null));
            expectEmptied(all, offset, withAgent, () -> all.setTraceContext(TRACE, SPAN, 1, offset, null));
            expectEmptied(all, offset, null, () -> clear(all, offset));
            expectEmptied(all, offset, null, () -> clear(all, name));
        }
        for (String noId : List.of("t".repeat(256), "")) {
            setAll(all);
            expect(false, setter.setAttribute("spanid", noId));
            expect(
                    withAgent ? "[" + String.join(", ", valuesOfAll()) + "; no span]" : NO_CONTEXT,
                    all.copy().toString());
        }
        all.clear();
        expect(NO_CONTEXT, all.copy().toString());
    }

    private static void expectUnchanged(ContextSetter all, Class<?> type, String part, Callable<?> call) {
        setAll(all);
        String before = all.copy().toString();
        expectThrown(type, part, call);
        expect(before, all.copy().toString());
    }

    /** Expects that exactly this attribute has no value after the call. */
    private static void expectEmptied(ContextSetter all, int offset, Object result, Callable<?> call) {
        boolean isSet = setAll(all);
        try {
            expect(result, call.call());
        } catch (Exception e) {
            throw new AssertionError(e);
        }
        List<String> values = valuesOfAll();
        values.set(offset, null);
        String expected = "[" + String.join(", ", values) + "; " + TRACE + "-" + SPAN + "]";
        expect(isSet ? expected : NO_CONTEXT, all.copy().toString());
    }

    /** Sets a value in every slot, and a span. Returns whether all were set. */
    private static boolean setAll(ContextSetter all) {
        boolean isSet = all.setTraceContext(TRACE, SPAN, 1);
        List<String> values = valuesOfAll();
        for (int i = 0; i < values.size(); i++) {
            expect(isSet, all.setAttribute(i, values.get(i)));
        }
        return isSet;
    }

    private static List<String> valuesOfAll() {
        List<String> values = new ArrayList<>();
        SLOTS.forEach(name -> values.add("of " + name));
        return values;
    }

    private static Object clear(ContextSetter setter, int offset) {
        setter.clearAttribute(offset);
        return null;
    }

    private static Object clear(ContextSetter setter, String name) {
        return ContextCalls.clear(setter, name);
    }
}
