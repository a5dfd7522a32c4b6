package programs;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;

/**
 * Installs handlers of signals, by the JVM, while the program is profiled, and later again: {@code
 * LateHandlers NAME...}. Prints lines with times in milliseconds since 1970: {@code put back} when a profiler
 * has had the time to install its own handlers before them, {@code again} when they are installed again,
 * {@code left} when a profiler has had the time to notice that, and {@code end}.
 */
public final class LateHandlers {
    /** The profiler checks the handlers every second. */
    private static final int LOOK_MS = 1_500;
    private static final int SAMPLED_MS = 1_000;

    private LateHandlers() {}

    public static void main(String[] args) throws Exception {
        work(300);
        install(args);
        work(LOOK_MS);
        report("put back");
        work(SAMPLED_MS);
        report("again");
        install(args);
        work(LOOK_MS);
        report("left");
        work(SAMPLED_MS);
        report("end");
    }

    private static void report(String moment) {
        System.out.println(moment + " " + System.currentTimeMillis());
    }

    /** The classes are reached by their names, since compilers warn of them. */
    static void install(String[] names) throws ReflectiveOperationException {
        Class<?> signal = Class.forName("sun.misc.Signal");
        Class<?> handler = Class.forName("sun.misc.SignalHandler");
        InvocationHandler nothing = (proxy, method, arguments) -> null;
        Object instance = Proxy.newProxyInstance(handler.getClassLoader(), new Class<?>[] {handler}, nothing);
        for (String name : names) {
            Object wanted = signal.getConstructor(String.class).newInstance(name);
            signal.getMethod("handle", signal, handler).invoke(null, wanted, instance);
        }
    }

    /** Uses the processor and sleeps in turn. */
    static void work(int milliseconds) throws InterruptedException {
        long end = System.nanoTime() + milliseconds * 1_000_000L;
        while (System.nanoTime() < end) {
            long x = 1;
            for (int i = 0; i < 1_000_000; i++) {
                x = Work.mix(x);
            }
            Work.sink = x;
            Thread.sleep(1);
        }
    }
}
