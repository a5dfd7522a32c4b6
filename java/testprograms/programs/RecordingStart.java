package programs;

import java.io.IOException;
import jdk.jfr.Recording;

/**
 * Measures how long the JVM's recorder takes to start: {@code RecordingStart alone} starts a recording at
 * once and prints the nanoseconds that this took. {@code RecordingStart} does nothing until its standard
 * input ends.
 */
public final class RecordingStart {
    private RecordingStart() {}

    public static void main(String[] args) throws IOException {
        if (args.length == 0) {
            System.in.read();
            return;
        }
        long start = System.nanoTime();
        try (Recording recording = new Recording()) {
            recording.start();
            System.out.println(System.nanoTime() - start);
        }
    }
}
