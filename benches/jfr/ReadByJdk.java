import java.nio.file.Path;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordingFile;

/** Reads every event, and every frame of its stack, by the JDK's own reader: {@code ReadByJdk FILE}. */
public final class ReadByJdk {
    private ReadByJdk() {}

    public static void main(String[] args) throws Exception {
        Passes.serve(read -> {
            try (RecordingFile file = new RecordingFile(Path.of(args[0]))) {
                while (file.hasMoreEvents()) {
                    RecordedEvent event = file.readEvent();
                    read.events++;
                    if (event.getStackTrace() != null) {
                        read.stacks++;
                        for (RecordedFrame frame : event.getStackTrace().getFrames()) {
                            read.frames++;
                            read.check += frame.getLineNumber();
                        }
                    }
                }
            }
        });
    }
}
