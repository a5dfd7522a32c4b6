package programs;

/** The smallest program: prints one line. */
public final class Hello {
    private Hello() {}

    public static void main(String[] args) {
        System.out.println("Hello");
    }
}
