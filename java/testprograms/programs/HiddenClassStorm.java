package programs;

import java.lang.invoke.MethodHandles;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Array;
import java.lang.reflect.Method;

/**
 * Defines, runs and drops classes by the thousand, so that the memory of their metadata is reused while
 * samples that point to it wait: {@code HiddenClassStorm [SECONDS [THREADS [ROUNDS]]]}. The names within each
 * class agree with each other (see {@link StormClass}), so that a profile that mixes two classes up shows it.
 * The classes are hidden ones, or before Java 15 each has its own class loader. Prints the number of classes,
 * and the number that the VM unloaded.
 */
public final class HiddenClassStorm {
    private static final int CLASSES_PER_COLLECTION = 50;

    private HiddenClassStorm() {}

    /** Defines a class from these bytes that only the caller keeps alive. */
    private interface Definer {
        Class<?> define(byte[] bytes) throws ReflectiveOperationException;
    }

    private static final class OneClassLoader extends ClassLoader {
        Class<?> define(byte[] bytes) {
            return defineClass(null, bytes, 0, bytes.length);
        }
    }

    public static void main(String[] args) throws InterruptedException {
        Clock clock = new Clock(args, 5);
        int threads = args.length > 1 ? Integer.parseInt(args[1]) : 2;
        int rounds = args.length > 2 ? Integer.parseInt(args[2]) : 500_000;
        Definer definer = definer();
        long[] classes = new long[threads];
        Thread[] storm = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            int index = i;
            storm[i] = new Thread(
                    () -> classes[index] = run(clock, definer, index, threads, rounds), "storm-" + i);
            storm[i].start();
        }
        long total = 0;
        for (int i = 0; i < threads; i++) {
            storm[i].join();
            total += classes[i];
        }
        long unloaded = ManagementFactory.getClassLoadingMXBean().getUnloadedClassCount();
        System.out.println("classes=" + total + " unloaded=" + unloaded);
    }

    private static long run(Clock clock, Definer definer, int first, int step, int rounds) {
        long classes = 0;
        int number = first;
        while (clock.isRunning()) {
            try {
                burn(definer, number % StormClass.MAX_NUMBER + 1, rounds);
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
            number += step;
            if (++classes % CLASSES_PER_COLLECTION == 0 && first == 0) {
                System.gc();
            }
        }
        return classes;
    }

    private static void burn(Definer definer, int number, int rounds) throws ReflectiveOperationException {
        Class<?> type = definer.define(StormClass.bytes(number));
        Method burn = type.getMethod(StormClass.methodName(number), long.class, int.class);
        Work.sink = (Long) burn.invoke(null, (long) number, rounds);
    }

    private static Definer definer() {
        MethodHandles.Lookup lookup = MethodHandles.lookup();
        for (Method method : MethodHandles.Lookup.class.getMethods()) {
            if (method.getName().equals("defineHiddenClass")) {
                Object noOptions = Array.newInstance(method.getParameterTypes()[2].getComponentType(), 0);
                return bytes ->
                        ((MethodHandles.Lookup) method.invoke(lookup, bytes, false, noOptions)).lookupClass();
            }
        }
        return bytes -> new OneClassLoader().define(bytes);
    }
}
