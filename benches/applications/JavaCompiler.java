import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/** Compiles a Java source by javac, again and again. */
final class JavaCompiler {
    private JavaCompiler() {}

    public static void main(String[] arguments) throws IOException {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        javax.tools.JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        if (compiler == null) {
            throw new IllegalStateException("this Java has no compiler");
        }
        Path folder = Files.createTempDirectory("javac");
        Path source = folder.resolve("Shapes.java");
        Files.writeString(source, source());
        while (System.nanoTime() < end) {
            try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null)) {
                List<String> options = List.of("-d", folder.toString());
                if (!compiler.getTask(null, files, null, options, null, files.getJavaFileObjects(source))
                        .call()) {
                    throw new AssertionError("does not compile");
                }
            }
        }
    }

    private static String source() {
        StringBuilder source = new StringBuilder(
                "import java.util.*;\nimport java.util.stream.*;\n\nclass Shapes {\n");
        for (int number = 0; number < 200; number++) {
            source.append(String.format(
                    "    record Shape%d(double width, List<String> names) {%n"
                            + "        Map<Integer, List<String>> byLength() {%n"
                            + "            return names.stream().filter(name -> name.length() > %d)%n"
                            + "                    .collect(Collectors.groupingBy(String::length));%n"
                            + "        }%n    }%n",
                    number, number));
        }
        return source.append("}\n").toString();
    }
}
