import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * Does its work once for each line of standard input, and answers each with
 * {@code EVENTS STACKS FRAMES CHECK}.
 */
final class Passes {
    private Passes() {}

    /** The counts of what was read in one pass. */
    static final class Read {
        long events;
        long stacks;
        long frames;

        /** The sum of all line numbers, so that no reader can omit reading them. */
        long check;
    }

    interface Pass {
        void run(Read read) throws Exception;
    }

    static void serve(Pass pass) throws Exception {
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in));
        while (asked.readLine() != null) {
            Read read = new Read();
            pass.run(read);
            System.out.println(read.events + " " + read.stacks + " " + read.frames + " " + read.check);
            System.out.flush();
        }
    }
}
