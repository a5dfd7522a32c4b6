package programs;

/** Makes strings of Latin-1 text from UTF-16: {@code CompressedStrings TIMES}. */
public final class CompressedStrings {
    private CompressedStrings() {}

    public static void main(String[] args) {
        char[] text = "text that has one byte a character; ".repeat(100).toCharArray();
        long characters = 0;
        for (int times = Integer.parseInt(args[0]); times > 0; times--) {
            characters += make(text);
        }
        System.out.println(characters);
    }

    private static int make(char[] text) {
        return new String(text).length();
    }
}
