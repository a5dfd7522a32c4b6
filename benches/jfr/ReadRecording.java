import java.nio.file.Path;
import java.util.Locale;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordingFile;

/** Reads a recording by the JDK's own reader, again and again: {@code ReadRecording FILE PASSES}, and prints each pass. */
public final class ReadRecording {
    private ReadRecording() {}

    public static void main(String[] args) throws Exception {
        for (int pass = 0; pass < Integer.parseInt(args[1]); pass++) {
            long start = System.nanoTime();
            long events = 0;
            long frames = 0;
            try (RecordingFile file = new RecordingFile(Path.of(args[0]))) {
                while (file.hasMoreEvents()) {
                    RecordedEvent event = file.readEvent();
                    events++;
                    if (event.getStackTrace() != null) {
                        for (RecordedFrame frame : event.getStackTrace().getFrames()) {
                            frames += frame.getLineNumber() >= 0 ? 1 : 0;
                        }
                    }
                }
            }
            double ms = (System.nanoTime() - start) / 1e6;
            System.out.printf(Locale.ROOT, "    pass %d: %.1f ms, %d events, %d frames%n", pass + 1, ms, events, frames);
        }
    }
}
