package programs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Deletes a library that it has loaded, then burns in the library: {@code DeletedLibrary [SECONDS]}. */
public final class DeletedLibrary {
    private DeletedLibrary() {}

    public static void main(String[] args) throws IOException {
        Clock clock = new Clock(args, 5);
        Work.sink = Native.spin(1);
        Files.delete(Path.of(System.getProperty("ddproftest")));
        while (clock.isRunning()) {
            Work.sink = Native.spin(1_000_000);
        }
    }
}
