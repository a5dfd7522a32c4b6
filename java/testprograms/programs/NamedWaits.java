package programs;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.LinkedBlockingQueue;

/** Threads each of which waits for another thing until the program is killed. */
public final class NamedWaits {
    private NamedWaits() {}

    private static final Object HELD = new Object();
    private static final Object NOTIFIED = new Object();
    private static final LinkedBlockingQueue<String> EMPTY = new LinkedBlockingQueue<>();

    /** A wait. */
    private interface Wait {
        void begin() throws IOException, InterruptedException;
    }

    public static void main(String[] args) throws Exception {
        ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        Socket client = new Socket(server.getInetAddress(), server.getLocalPort());
        Socket accepted = server.accept();
        synchronized (HELD) {
            start("enters", NamedWaits::enter);
            start("awaits", NamedWaits::await);
            start("takes", NamedWaits::take);
            start("pauses", NamedWaits::pause);
            start("reads", () -> read(accepted));
            start("accepts", () -> accept(server));
            pause();
        }
        client.close();
    }

    private static void start(String name, Wait wait) {
        Runnable task = () -> {
            try {
                wait.begin();
            } catch (IOException | InterruptedException e) {
                throw new IllegalStateException(e);
            }
        };
        new Thread(task, name).start();
    }

    private static void enter() {
        synchronized (HELD) {
            HELD.notifyAll();
        }
    }

    private static void await() throws InterruptedException {
        synchronized (NOTIFIED) {
            NOTIFIED.wait();
        }
    }

    private static void take() throws InterruptedException {
        EMPTY.take();
    }

    private static void pause() throws InterruptedException {
        Thread.sleep(Long.MAX_VALUE);
    }

    private static void read(Socket socket) throws IOException {
        socket.getInputStream().read();
    }

    private static void accept(ServerSocket server) throws IOException {
        server.accept();
    }
}
