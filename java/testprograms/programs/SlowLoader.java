package programs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A system class loader ({@code -Djava.system.class.loader}) whose creation waits until the agent's library
 * is loaded, at most two seconds: some VMs load no agent before JVMTI's live phase, which begins later.
 */
public final class SlowLoader extends ClassLoader {
    public SlowLoader(ClassLoader parent) throws IOException, InterruptedException {
        super(parent);
        long end = System.nanoTime() + 2_000_000_000L;
        while (!isAgentLoaded() && System.nanoTime() < end) {
            Thread.sleep(10);
        }
        // Time for the agent to ask for an environment.
        Thread.sleep(200);
    }

    private static boolean isAgentLoaded() throws IOException {
        return Files.readString(Path.of("/proc/self/maps")).contains("libotlpprof");
    }
}
