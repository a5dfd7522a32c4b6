package programs;

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
import javax.servlet.ServletException;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/**
 * A server of servlets (Jetty), requests to it, and some of its work on other threads. Made for
 * OpenTelemetry's Java agent.
 */
public final class OpenTelemetryServlet {
    private static final ExecutorService ELSEWHERE = Executors.newFixedThreadPool(2);

    private OpenTelemetryServlet() {}

    public static void main(String[] args) throws Exception {
        Server server = new Server(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        ServletContextHandler servlets = new ServletContextHandler();
        servlets.addServlet(new ServletHolder(new Orders()), "/orders/*");
        server.setHandler(servlets);
        server.start();
        HttpClient client = HttpClient.newHttpClient();
        for (int i = 0; i < 20; i++) {
            URI order = server.getURI().resolve("/orders/" + i);
            HttpResponse<String> response =
                    client.send(HttpRequest.newBuilder(order).build(), HttpResponse.BodyHandlers.ofString());
            if (response.statusCode() != 200) {
                throw new IllegalStateException(order + ": " + response.statusCode());
            }
            Burning.outside();
        }
        server.stop();
        ELSEWHERE.shutdown();
    }

    /** Works on the request's thread and on another thread. */
    private static final class Orders extends HttpServlet {
        private static final long serialVersionUID = 1;

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response)
                throws ServletException, IOException {
            Burning.announce("orders", Span.current(), "GET /orders/*");
            Burning.orders();
            Burning.announce("payment", Span.current(), "GET /orders/*");
            try {
                ELSEWHERE.submit(Burning::payment).get();
            } catch (InterruptedException | ExecutionException e) {
                throw new ServletException(e);
            }
        }
    }
}
