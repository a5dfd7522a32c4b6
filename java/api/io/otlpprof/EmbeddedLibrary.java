package io.otlpprof;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;
import java.util.stream.Stream;

/** The copy of the agent's library in the jar of these classes. */
final class EmbeddedLibrary {
    private EmbeddedLibrary() {}

    /**
     * Loads the library.
     *
     * @throws UnsatisfiedLinkError if there is no library for this process, or it cannot be loaded
     */
    static void load() {
        String name = System.mapLibraryName("otlpprof");
        String platform = platform();
        try (InputStream library = EmbeddedLibrary.class.getResourceAsStream(platform + "/" + name)) {
            if (library == null) {
                throw new UnsatisfiedLinkError(
                        "no " + name + " in java.library.path, and none for " + platform
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

    /**
     * Returns the folder of this process's library, as scripts/elf-platform.sh names it: by system,
     * architecture and C library.
     */
    private static String platform() {
        String architecture = System.getProperty("os.arch", "");
        return System.getProperty("os.name", "").toLowerCase(Locale.ROOT)
                + "-"
                + (architecture.equals("amd64") ? "x86_64" : architecture)
                + (hasMusl() ? "-musl" : "");
    }

    /**
     * Whether the C library of this process is musl: a property of the process, because a system of one C
     * library can run programs of the other one. Where /proc is not mounted, glibc is assumed.
     */
    private static boolean hasMusl() {
        // Paths are bytes, for which this character set has a character each.
        try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"), StandardCharsets.ISO_8859_1)) {
            return maps.anyMatch(EmbeddedLibrary::isOfMusl);
        } catch (IOException | UncheckedIOException e) {
            return false;
        }
    }

    /**
     * Whether a line of /proc/self/maps is of musl, whose file is the dynamic linker too. It has one of three
     * names: {@code ld-musl-ARCHITECTURE.so.1}, {@code libc.musl-ARCHITECTURE.so.1}, and {@code libc.so},
     * which glibc has only as a text file for linkers.
     */
    private static boolean isOfMusl(String line) {
        String name = line.substring(line.lastIndexOf('/') + 1);
        return name.startsWith("ld-musl-") || name.startsWith("libc.musl-") || name.equals("libc.so");
    }
}
