import one.convert.Arguments;
import one.convert.JfrToOtlp;

/** Converts as {@code jfrconv -o otlp --threads} does: {@code ConvertByJfrconv FILE OUT}. */
public final class ConvertByJfrconv {
    private ConvertByJfrconv() {}

    public static void main(String[] args) throws Exception {
        Passes.serve(read -> JfrToOtlp.convert(args[0], args[1], new Arguments("-o", "otlp", "--threads")));
    }
}
