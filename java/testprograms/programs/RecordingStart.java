package programs;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import jdk.jfr.Recording;

/**
 * Measures how long the JVM's recorder takes to start: {@code RecordingStart nothing} starts a recording
 * without events at once and prints the nanoseconds that this took, and {@code RecordingStart events} one
 * with the events that the agent's option {@code jfr} enables. {@code RecordingStart} does nothing until its
 * standard input ends.
 */
public final class RecordingStart {
    private static final String[] MOMENTS = {
        "ExecutionSample", "NativeMethodSample", "ObjectAllocationSample", "JavaExceptionThrow",
        "JavaErrorThrow",
    };
    private static final String[] LASTING = {
        "JavaMonitorEnter", "JavaMonitorWait", "ThreadPark", "ThreadSleep", "VirtualThreadPinned",
        "SocketRead", "SocketWrite", "FileRead", "FileWrite", "ClassLoad",
    };

    private RecordingStart() {}

    public static void main(String[] args) throws IOException {
        if (args.length == 0) {
            System.in.read();
            return;
        }
        long start = System.nanoTime();
        try (Recording recording = new Recording()) {
            if (args[0].equals("events")) {
                recording.setSettings(settings());
            }
            recording.start();
            System.out.println(System.nanoTime() - start);
        }
    }

    private static Map<String, String> settings() {
        Map<String, String> settings = new HashMap<>();
        for (String event : MOMENTS) {
            enable(event, settings);
        }
        for (String event : LASTING) {
            enable(event, settings);
            settings.put("jdk." + event + "#threshold", "1 ms");
        }
        return settings;
    }

    private static void enable(String event, Map<String, String> settings) {
        settings.put("jdk." + event + "#enabled", "true");
        settings.put("jdk." + event + "#stackTrace", "true");
    }
}
