import java.util.Random;

/**
 * Writes doubles as text, as a producer of messages does: formats, parses, and compresses UTF-16 to Latin-1.
 */
final class FormattedDoubles {
    private FormattedDoubles() {}

    public static void main(String[] arguments) {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        Random random = new Random(1);
        StringBuilder message = new StringBuilder();
        long characters = 0;
        while (System.nanoTime() < end) {
            message.setLength(0);
            for (int id = 0; id < 50; id++) {
                double price = random.nextDouble() * 1_000_000;
                message.append(String.format("{\"id\": %d, \"price\": %.3f}", id, price));
                message.append(price).append('\n');
                characters += (long) Double.parseDouble(Double.toString(price));
            }
            char[] utf16 = new char[message.length()];
            message.getChars(0, utf16.length, utf16, 0);
            for (int times = 0; times < 500; times++) {
                characters += new String(utf16).length();
            }
        }
        System.out.println(characters);
    }
}
