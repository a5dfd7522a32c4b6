package programs;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Burns until SIGTERM arrives, or for five minutes, and counts SIGINT. Prints "ready" when it has burnt some
 * CPU time, "interrupted" for the first SIGINT, and at the end the number of SIGINTs. Ends with exit code 3.
 */
public final class CountedSignals {
    private static final int LEAST = 300;
    private static final AtomicInteger INTERRUPTS = new AtomicInteger();
    private static volatile boolean isEnding;

    private CountedSignals() {}

    public static void main(String[] args) throws Exception {
        Clock clock = new Clock(args, 300);
        handle("INT", () -> {
            if (INTERRUPTS.incrementAndGet() == 1) {
                System.out.println("interrupted");
            }
        });
        handle("TERM", () -> isEnding = true);
        for (int i = 0; i < LEAST; i++) {
            Work.sink = burn(1_000_000);
        }
        System.out.println("ready");
        while (!isEnding && clock.isRunning()) {
            Work.sink = burn(1_000_000);
        }
        // The JVM has started a thread for each earlier signal by now. Threads are called "SIGINT handler".
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread.getName().startsWith("SIGINT")) {
                thread.join();
            }
        }
        System.out.println("interrupts " + INTERRUPTS);
        System.exit(3);
    }

    private static long burn(int rounds) {
        long x = rounds;
        for (int i = 0; i < rounds; i++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
        }
        return x;
    }

    /** The classes are reached by their names, since compilers warn of them. */
    private static void handle(String name, Runnable action) throws ReflectiveOperationException {
        Class<?> signal = Class.forName("sun.misc.Signal");
        Class<?> handler = Class.forName("sun.misc.SignalHandler");
        InvocationHandler calls = (proxy, method, arguments) -> {
            if (method.getName().equals("handle")) {
                action.run();
            }
            return null;
        };
        Object instance = Proxy.newProxyInstance(handler.getClassLoader(), new Class<?>[] {handler}, calls);
        Object wanted = signal.getConstructor(String.class).newInstance(name);
        signal.getMethod("handle", signal, handler).invoke(null, wanted, instance);
    }
}
