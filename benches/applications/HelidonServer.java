// Maven: io.helidon.webserver:helidon-webserver:4.1.6
// Oldest: 21

import io.helidon.webserver.WebServer;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** Serves HTTP by Helidon, which handles requests on virtual threads, to a client in the same process. */
final class HelidonServer {
    private HelidonServer() {}

    public static void main(String[] arguments) throws Exception {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        WebServer server = WebServer.builder()
                .host("127.0.0.1")
                .port(0)
                .routing(routing -> routing.get("/sum/{most}", (request, response) -> {
                    int most = Integer.parseInt(request.path().pathParameters().get("most"));
                    response.send(sum(most));
                }))
                .build()
                .start();
        try {
            HttpClient client = HttpClient.newHttpClient();
            for (int number = 0; System.nanoTime() < end; number++) {
                URI uri = URI.create("http://127.0.0.1:" + server.port() + "/sum/" + (number % 1000));
                HttpResponse<String> response = client.send(
                        HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString());
                if (response.statusCode() != 200) {
                    throw new AssertionError(response);
                }
            }
        } finally {
            server.stop();
        }
    }

    private static String sum(int most) {
        StringBuilder text = new StringBuilder();
        long sum = 0;
        for (int number = 0; number < most; number++) {
            sum += number;
            text.append(sum).append(' ');
        }
        return text.toString();
    }
}
