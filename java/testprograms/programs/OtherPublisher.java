package programs;

import io.otlpprof.ContextSetter;
import io.otlpprof.Otlpprof;
import java.util.List;

/**
 * Publishes a process context of its own: {@code OtherPublisher HEXADECIMAL DELAY_MS}. Runs for a minute. One
 * thread sets a context with an attribute as soon as an agent is loaded.
 */
public final class OtherPublisher {
    private OtherPublisher() {}

    public static void main(String[] args) throws Exception {
        byte[] payload = new byte[args[0].length() / 2];
        for (int i = 0; i < payload.length; i++) {
            payload[i] = (byte) Integer.parseInt(args[0].substring(2 * i, 2 * i + 2), 16);
        }
        Thread setter = new Thread(OtherPublisher::set, "setter");
        setter.setDaemon(true);
        setter.start();
        System.out.println("waiting");
        Thread.sleep(Long.parseLong(args[1]));
        if (!Native.publish(payload)) {
            throw new AssertionError();
        }
        System.out.println("published");
        Thread.sleep(60_000);
    }

    private static void set() {
        try {
            while (!Otlpprof.getInstance().isAvailable()) {
                Thread.sleep(10);
            }
            ContextSetter context = new ContextSetter(Otlpprof.getInstance(), List.of("tenant"));
            for (int turn = 0; ; turn++) {
                context.setTraceContext(1, 2, 3, 0);
                context.setAttribute("tenant", "tenant-" + turn % 10);
                Thread.sleep(5);
            }
        } catch (InterruptedException e) {
            // The program ends.
        }
    }
}
