package programs;

import java.util.HashSet;
import java.util.Set;

/**
 * Two libraries that are loaded and unloaded in turn: {@code PluginChurn SECONDS PATH_A PATH_B}. Burns in
 * each while it is loaded. At the end, prints whether both were ever at the same address.
 */
public final class PluginChurn {
    private PluginChurn() {}

    public static void main(String[] args) {
        Clock clock = new Clock(args, 5);
        Set<Long> ofA = new HashSet<>();
        Set<Long> ofB = new HashSet<>();
        int rounds = 0;
        while (clock.isRunning()) {
            // From a few milliseconds to some tens.
            long work = 1_000_000L << rounds++ % 5;
            ofA.add(Native.pluginA(args[1], work));
            ofB.add(Native.pluginB(args[2], work));
        }
        if (ofA.contains(0L) || ofB.contains(0L)) {
            throw new IllegalStateException("a library cannot be loaded");
        }
        ofA.retainAll(ofB);
        System.out.println(ofA.isEmpty() ? "apart" : "same address");
    }
}
