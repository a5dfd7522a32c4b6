package io.otlpprof;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/** The copy of the agent's library in the jar of these classes. */
final class EmbeddedLibrary {
    private EmbeddedLibrary() {}

    /**
     * Loads the library.
     *
     * @throws UnsatisfiedLinkError if there is no library for this machine, or it cannot be loaded
     */
    static void load() {
        String name = System.mapLibraryName("otlpprof");
        try (InputStream library = EmbeddedLibrary.class.getResourceAsStream(platform() + "/" + name)) {
            if (library == null) {
                throw new UnsatisfiedLinkError(
                        "no " + name + " in java.library.path, and none for " + platform()
                                + " beside these classes");
            }
            load(library);
        } catch (IOException e) {
            throw new UnsatisfiedLinkError(name + " cannot be unpacked to java.io.tmpdir: " + e);
        }
    }

    private static void load(InputStream library) throws IOException {
        // A new file that only its owner can read.
        Path file = Files.createTempFile("otlpprof-", ".so");
        try {
            Files.copy(library, file, StandardCopyOption.REPLACE_EXISTING);
            System.load(file.toString());
        } finally {
            // The mapping outlives the file. The file is deleted here, so that it does not remain if the JVM
            // is killed.
            Files.deleteIfExists(file);
        }
    }

    /** Returns the folder of this machine's library, as scripts/package.sh names it. */
    private static String platform() {
        String architecture = System.getProperty("os.arch", "");
        return System.getProperty("os.name", "").toLowerCase(Locale.ROOT)
                + "-"
                + (architecture.equals("amd64") ? "x86_64" : architecture);
    }
}
