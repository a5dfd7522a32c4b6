package programs;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import io.opentelemetry.api.trace.Span;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * An HTTP server, requests to it, and some of its work on other threads. Made for OpenTelemetry's Java agent.
 */
public final class OpenTelemetryServer {
    private static final ExecutorService ELSEWHERE = Executors.newFixedThreadPool(2);

    private OpenTelemetryServer() {}

    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        ExecutorService workers = Executors.newFixedThreadPool(2);
        server.setExecutor(workers);
        server.createContext("/orders", new Handler("orders", Burning::orders));
        server.createContext("/payment", new Handler("payment", Burning::payment));
        server.start();
        HttpClient client = HttpClient.newHttpClient();
        String address = "http://localhost:" + server.getAddress().getPort();
        for (int i = 0; i < 10; i++) {
            for (String path : new String[] {"/orders/" + i, "/payment"}) {
                HttpRequest request = HttpRequest.newBuilder(URI.create(address + path)).build();
                HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());
                if (response.statusCode() != 200) {
                    throw new IllegalStateException(path + ": " + response.statusCode());
                }
            }
            Burning.outside();
        }
        server.stop(0);
        workers.shutdown();
        ELSEWHERE.shutdown();
    }

    private static final class Handler implements HttpHandler {
        private final String name;
        private final Runnable work;

        Handler(String name, Runnable work) {
            this.name = name;
            this.work = work;
        }

        @Override
        public void handle(HttpExchange exchange) throws IOException {
            Burning.announce(name, Span.current(), "GET /" + name);
            work.run();
            try {
                ELSEWHERE.submit(work).get();
            } catch (InterruptedException | ExecutionException e) {
                throw new IOException(e);
            }
            exchange.sendResponseHeaders(200, -1);
            exchange.close();
        }
    }
}
