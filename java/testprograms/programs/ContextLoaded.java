package programs;

import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.nio.file.Path;
import java.util.List;

/**
 * Loads the agent from java.library.path, and profiles itself twice, with the options in AGENT_OPTIONS.
 * Prints {@code done} if all results are as documented.
 */
public final class ContextLoaded {
    private ContextLoaded() {}

    public static void main(String[] args) {
        expect(!Otlpprof.getInstance(Path.of("no-library.so")).isAvailable(), "loaded from nowhere");
        // This call names no path of the library.
        Otlpprof profiler = Otlpprof.getInstance();
        expect(profiler.isAvailable() && !profiler.stop() && !profiler.flush(), "loaded, and not started");
        expect(profiler.status().equals("not profiling"), profiler.status());
        ContextSetter setter = new ContextSetter(profiler, List.of("rest_endpoint"));
        // The context can be set before a session starts.
        expect(setter.setAttribute(0, "/before"), "set before the start");
        try {
            profiler.start("cpu=never");
            expect(false, "a wrong option");
        } catch (IllegalArgumentException e) {
            expect(e.getMessage().contains("cpu=never"), e.getMessage());
        }
        try {
            profiler.start("flush");
            expect(false, "a command");
        } catch (IllegalArgumentException e) {
            expect(e.getMessage().contains("command"), e.getMessage());
        }
        String options = System.getenv("AGENT_OPTIONS");
        try {
            profiler.start(options + ",context=1+2+3+4+5+6+7+8+9");
            expect(false, "a tenth attribute");
        } catch (IllegalStateException e) {
            expect(
                    e.getMessage().contains("9 context attributes at most")
                            && e.getMessage().contains("rest_endpoint"),
                    e.getMessage());
        }
        new ContextSetter(profiler, List.of("none", "of", "the", "names", "has", "been", "taken", "yet"));
        expect(profiler.start(options), "started");
        try {
            profiler.start(options);
            expect(false, "twice");
        } catch (IllegalStateException e) {
            expect(e.getMessage().contains("already"), e.getMessage());
        }
        expect(profiler.status().startsWith("profiling for"), profiler.status());
        burn();
        setter.setAttribute(0, "/first");
        burn();
        expect(profiler.flush() && profiler.stop() && !profiler.stop(), "stopped");
        setter.setAttribute(0, "/second");
        expect(profiler.start(options), "started again");
        burn();
        expect(profiler.stop(), "stopped again");
        System.out.println("done");
    }

    private static void burn() {
        long end = System.nanoTime() + 300_000_000;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 1000; i++) {
                Work.sink = Work.mix(Work.sink);
            }
        }
    }

    private static void expect(boolean isSo, String what) {
        if (!isSo) {
            throw new AssertionError(what);
        }
    }
}
