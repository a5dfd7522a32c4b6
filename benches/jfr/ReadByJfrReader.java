import one.jfr.JfrReader;
import one.jfr.StackTrace;
import one.jfr.event.Event;

/**
 * Reads the events that async-profiler's reader supports, and every frame of their stacks, by that reader:
 * {@code ReadByJfrReader FILE}. The reader skips all other events.
 */
public final class ReadByJfrReader {
    private ReadByJfrReader() {}

    public static void main(String[] args) throws Exception {
        Passes.serve(read -> {
            try (JfrReader reader = new JfrReader(args[0])) {
                reader.stopAtNewChunk = true;
                while (reader.hasMoreChunks()) {
                    for (Event event; (event = reader.readEvent()) != null; ) {
                        read.events++;
                        StackTrace stack = reader.stackTraces.get(event.stackTraceId);
                        if (stack != null) {
                            read.stacks++;
                            for (int location : stack.locations) {
                                read.frames++;
                                read.check += location >> 16;
                            }
                        }
                    }
                }
            }
        });
    }
}
