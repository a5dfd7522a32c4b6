// Maven: org.scala-lang:scala-compiler:2.13.16

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import scala.tools.nsc.MainClass;

/** Compiles a Scala source by scalac, again and again. */
final class ScalaCompiler {
    private ScalaCompiler() {}

    public static void main(String[] arguments) throws IOException {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        Path folder = Files.createTempDirectory("scalac");
        Path source = folder.resolve("Shapes.scala");
        Files.writeString(source, source());
        String classes = System.getProperty("java.class.path");
        while (System.nanoTime() < end) {
            if (!new MainClass().process(new String[] {
                "-usejavacp", "-classpath", classes, "-d", folder.toString(), source.toString()
            })) {
                throw new AssertionError("does not compile");
            }
        }
    }

    private static String source() {
        StringBuilder source =
                new StringBuilder("package shapes\n\nsealed trait Shape { def area: Double }\n");
        for (int number = 0; number < 60; number++) {
            source.append(String.format(
                    "case class Shape%d(width: Double, height: Double) extends Shape {%n"
                            + "  def area = List(width, height).map(_ * %d).foldLeft(1.0)(_ * _)%n"
                            + "  def grown = "
                            + "for (side <- Seq(width, height) if side > 0) yield copy(side + 1)%n}%n",
                    number, number));
        }
        return source.toString();
    }
}
