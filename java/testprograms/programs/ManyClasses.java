package programs;

/** Loads and initialises COUNT classes: {@code ManyClasses COUNT}. */
public final class ManyClasses {
    private ManyClasses() {}

    private static final class Loader extends ClassLoader {
        Class<?> define(byte[] bytes) {
            return defineClass(null, bytes, 0, bytes.length);
        }
    }

    public static void main(String[] args) throws ClassNotFoundException {
        int count = Integer.parseInt(args[0]);
        Loader loader = new Loader();
        for (int number = 1; number <= count; number++) {
            Class.forName(loader.define(StormClass.bytes(number)).getName(), true, loader);
        }
        System.out.println("classes=" + count);
    }
}
