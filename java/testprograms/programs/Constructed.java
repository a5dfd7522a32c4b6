package programs;

/**
 * A class with a constructor that calls its superclass's, and two that call other constructors of the class.
 */
public class Constructed extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final int sum;

    public Constructed(int most) {
        super("up to " + most, null, false, most > 0);
        int all = 0;
        for (int i = 0; i < most; i++) {
            all += i % 3 == 0 ? i : new StringBuilder().append(i).length();
        }
        sum = all;
    }

    public Constructed() {
        this(3);
    }

    public Constructed(String text) {
        this(text == null ? 0 : text.length());
    }

    public int sum() {
        return sum;
    }
}
