package programs;

/**
 * A pthread, never attached to the JVM, that renames itself: {@code RenamedPthread MILLISECONDS}. The value
 * is the CPU time under each of two names.
 */
public final class RenamedPthread {
    private RenamedPthread() {}

    public static void main(String[] args) {
        int errno = Native.renamedPthread(Integer.parseInt(args[0]));
        if (errno != 0) {
            throw new IllegalStateException("pthread_create: errno " + errno);
        }
    }
}
