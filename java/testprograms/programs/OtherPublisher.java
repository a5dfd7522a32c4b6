package programs;

/** Publishes a process context of its own: {@code OtherPublisher HEXADECIMAL DELAY_MS}. Goes on for a minute. */
public final class OtherPublisher {
    private OtherPublisher() {}

    public static void main(String[] args) throws Exception {
        byte[] payload = new byte[args[0].length() / 2];
        for (int i = 0; i < payload.length; i++) {
            payload[i] = (byte) Integer.parseInt(args[0].substring(2 * i, 2 * i + 2), 16);
        }
        System.out.println("waiting");
        Thread.sleep(Long.parseLong(args[1]));
        if (!Native.publish(payload)) {
            throw new AssertionError();
        }
        System.out.println("published");
        Thread.sleep(60_000);
    }
}
