import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import javax.management.JMX;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;
import jdk.management.jfr.ConfigurationInfo;
import jdk.management.jfr.FlightRecorderMXBean;

/**
 * Starts a recording in a running JVM and writes it to standard output as it grows, until that JVM ends, the
 * time is over or the output is closed:
 *
 * <pre>java RecordingStream.java PID|HOST:PORT|service:jmx:...
 *     [--settings NAME] [--event NAME]... [--seconds N]</pre>
 *
 * PID is a JVM on this machine of the same user; the other forms are addresses of a JVM's JMX server. NAME is
 * a configuration that the JVM knows ({@code default}, {@code profile}). The JVM must be of version 17 or
 * later: earlier ones give out a recording only when it has ended.
 */
public final class RecordingStream {
    private RecordingStream() {}

    /** The pause after a read that gave nothing new, in ms. HotSpot flushes once a second. */
    private static final long PAUSE_MS = 100;

    /** The number of empty reads after which the stream of a stopped recording counts as ended. */
    private static final int MOST_EMPTY = 10;

    private static final int BLOCK = 1 << 20;

    /** The most seconds whose number of nanoseconds fits a long. */
    private static final long MOST_SECONDS = Long.MAX_VALUE / 1_000_000_000L;

    public static void main(String[] args) throws Exception {
        String settings = "default";
        long seconds = MOST_SECONDS;
        Map<String, String> enabled = new HashMap<>();
        String target = null;
        for (int i = 0; i < args.length; i++) {
            boolean hasValue = i + 1 < args.length;
            if (args[i].equals("--settings") && hasValue) {
                settings = args[++i];
            } else if (args[i].equals("--seconds") && hasValue) {
                seconds = seconds(args[++i]);
            } else if (args[i].equals("--event") && hasValue) {
                String event = args[++i];
                enabled.put(event + "#enabled", "true");
                enabled.put(event + "#threshold", "0 ns");
                enabled.put(event + "#stackTrace", "true");
            } else if (target == null && !args[i].startsWith("--")) {
                target = args[i];
            } else if (!hasValue && Set.of("--settings", "--seconds", "--event").contains(args[i])) {
                fail(args[i] + " needs a value");
            } else {
                fail("what is '" + args[i] + "'?");
            }
        }
        if (target == null) {
            fail("usage: java RecordingStream.java PID|HOST:PORT|service:jmx:... [--settings NAME]"
                    + " [--event NAME]... [--seconds N]");
        }
        // Standard output is for the recording only.
        PrintStream out = System.out;
        System.setOut(System.err);
        try (JMXConnector connector = JMXConnectorFactory.connect(address(target))) {
            record(connector.getMBeanServerConnection(), settings, enabled, seconds, out);
        } catch (IOException | RuntimeException e) {
            // The JVM has ended. Everything of its recording has been written.
            if (!hasBegun) {
                fail(target + ": " + e.getMessage());
            }
        }
    }

    private static long seconds(String text) {
        try {
            long seconds = Long.parseLong(text);
            if (seconds > 0 && seconds <= MOST_SECONDS) {
                return seconds;
            }
        } catch (NumberFormatException e) {
            // The text is not a number.
        }
        fail("--seconds " + text + ": not a whole number of seconds above 0");
        return 0;
    }

    private static volatile boolean hasBegun;

    private static void fail(String why) {
        // The JDK's message may have several lines.
        System.err.println("RecordingStream: " + why.replaceAll("\\s*\\R\\s*", " "));
        System.exit(2);
    }

    private static JMXServiceURL address(String target) throws Exception {
        if (target.startsWith("service:")) {
            return new JMXServiceURL(target);
        }
        if (target.contains(":")) {
            return new JMXServiceURL("service:jmx:rmi:///jndi/rmi://" + target + "/jmxrmi");
        }
        com.sun.tools.attach.VirtualMachine vm = null;
        try {
            vm = com.sun.tools.attach.VirtualMachine.attach(target);
            return new JMXServiceURL(vm.startLocalManagementAgent());
        } catch (com.sun.tools.attach.AttachNotSupportedException | IOException e) {
            fail("cannot attach to process " + target + ": " + e.getMessage());
            throw e;
        } finally {
            if (vm != null) {
                vm.detach();
            }
        }
    }

    private static void record(
            MBeanServerConnection server,
            String settings,
            Map<String, String> enabled,
            long seconds,
            OutputStream out)
            throws Exception {
        FlightRecorderMXBean recorder = JMX.newMXBeanProxy(
                server, new ObjectName(FlightRecorderMXBean.MXBEAN_NAME), FlightRecorderMXBean.class);
        long recording = recorder.newRecording();
        try {
            Map<String, String> all = new HashMap<>();
            boolean isKnown = false;
            for (ConfigurationInfo known : recorder.getConfigurations()) {
                if (known.getName().equals(settings)) {
                    all.putAll(known.getSettings());
                    isKnown = true;
                }
            }
            if (!isKnown) {
                fail("the JVM knows no settings '" + settings + "'");
            }
            all.putAll(enabled);
            recorder.setRecordingSettings(recording, all);
            recorder.startRecording(recording);
            Map<String, String> options = new HashMap<>();
            // Without this option a recording gives nothing before it has ended; with it, it gives its bytes
            // as they are flushed.
            options.put("streamVersion", "1.0");
            options.put("blockSize", Integer.toString(BLOCK));
            long stream;
            try {
                stream = recorder.openStream(recording, options);
            } catch (RuntimeException | IOException e) {
                fail("this JVM does not give out a recording that is still running; 17 and later do: "
                        + e.getMessage());
                return;
            }
            copy(recorder, stream, recording, System.nanoTime() + seconds * 1_000_000_000L, out);
        } finally {
            try {
                recorder.closeRecording(recording);
            } catch (Exception e) {
                // The JVM has ended, and its recording with it.
            }
        }
    }

    private static void copy(
            FlightRecorderMXBean recorder, long stream, long recording, long end, OutputStream out)
            throws Exception {
        boolean isStopped = false;
        int empty = 0;
        while (true) {
            if (!isStopped && System.nanoTime() - end >= 0) {
                recorder.stopRecording(recording);
                isStopped = true;
            }
            byte[] bytes;
            try {
                bytes = recorder.readStream(stream);
            } catch (IOException | RuntimeException e) {
                if (hasBegun) {
                    return;
                }
                throw e;
            }
            if (bytes == null) {
                return;
            }
            if (bytes.length == 0) {
                // Some JVMs never report the end of a stream. The recording is complete once it is stopped.
                if (isStopped && ++empty == MOST_EMPTY) {
                    return;
                }
                Thread.sleep(PAUSE_MS);
                continue;
            }
            empty = 0;
            hasBegun = true;
            out.write(bytes);
            out.flush();
            if (out instanceof PrintStream && ((PrintStream) out).checkError()) {
                return; // nobody reads any more
            }
        }
    }
}
