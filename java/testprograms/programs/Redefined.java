package programs;

import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;

/**
 * A thread calls methods of a class that another thread redefines again and again, with unchanged code. Must
 * be loaded as a Java agent too.
 */
public final class Redefined {
    private static final int REDEFINITIONS = 80;
    private static final int PAUSE_MS = 30;
    private static Instrumentation instrumentation;

    private Redefined() {}

    /** Called before main. */
    public static void premain(String options, Instrumentation given) {
        instrumentation = given;
    }

    /** The class that is redefined. Its constructor is never called. */
    static final class Victim {
        private static volatile long sum;

        private Victim() {
            sum = -1;
        }

        static void spin() {
            for (int number = 0; number < 2_000; number++) {
                step(number);
            }
        }

        static void step(int number) {
            sum += number * 31L;
        }
    }

    public static void main(String[] arguments) throws Exception {
        byte[] code;
        try (var stream = Redefined.class.getResourceAsStream("Redefined$Victim.class")) {
            code = stream.readAllBytes();
        }
        Thread spinning = new Thread(() -> {
            while (true) {
                Victim.spin();
            }
        }, "spinning");
        spinning.setDaemon(true);
        spinning.start();
        for (int count = 0; count < REDEFINITIONS; count++) {
            instrumentation.redefineClasses(new ClassDefinition(Victim.class, code));
            Thread.sleep(PAUSE_MS);
        }
        System.out.println(REDEFINITIONS + " redefinitions");
    }
}
