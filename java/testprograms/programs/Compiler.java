package programs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/** Compiles a folder of sources again and again: {@code Compiler SECONDS SOURCES CLASSES}. */
public final class Compiler {
    private Compiler() {}

    public static void main(String[] args) throws IOException {
        Clock clock = new Clock(args, 10);
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        if (compiler == null) {
            throw new IllegalStateException("this runtime has no compiler");
        }
        List<Path> sources;
        try (Stream<Path> files = Files.walk(Paths.get(args[1]))) {
            sources = files.filter(path -> path.toString().endsWith(".java")).collect(Collectors.toList());
        }
        while (clock.isRunning()) {
            try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null)) {
                Path[] paths = sources.toArray(new Path[0]);
                if (!compiler.getTask(null, files, null, List.of("-d", args[2], "-proc:none"), null,
                        files.getJavaFileObjects(paths)).call()) {
                    throw new IllegalStateException("the sources do not compile");
                }
            }
        }
    }
}
