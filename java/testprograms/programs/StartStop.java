package programs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * Starts and stops the agent again and again in this process: {@code StartStop LIBRARY OPTIONS [CYCLES]}. Two
 * threads burn meanwhile. The first half of the cycles allows for memory that is used once in a process's
 * life, such as the pages of the sample buffer, which are touched for the first time. In the second half no
 * cycle may leave anything. Prints the usage, and ends with status 1 if any of it has grown by more than
 * allowed:
 *
 * <p>not a single thread, descriptor or POSIX timer; 256 KiB of the C library's memory; 6 MiB of resident
 * memory. With 1,000 cycles, of which 500 are in the second half, that is half a KiB and 12 KiB a cycle. The
 * VM's compilers allocate and free memory, so the lowest of several measurements counts, and more are made if
 * the usage is too high. The heap must have a fixed size, so that its growth is not counted.
 */
public final class StartStop {
    private static final long HEAP_BYTES = 256 << 10;
    private static final long RESIDENT_BYTES = 6 << 20;

    private StartStop() {}

    public static void main(String[] args) throws Exception {
        String library = args[0];
        String options = args[1];
        int cycles = args.length > 2 ? Integer.parseInt(args[2]) : 1000;
        // Loads the library first, so that a missing library fails before anything else.
        Native.allocatedBytes();
        List<Thread> burners = startBurners();
        int tenth = cycles / 10;
        drive(library, options);
        Usage during = Usage.now();
        drive(library, "stop");
        System.out.println("in a session: " + during);
        Usage middle = null;
        Usage now = null;
        for (int done = tenth; done <= 10 * tenth; done += tenth) {
            cycle(library, options, tenth);
            now = Usage.now();
            System.out.println("after " + done + " cycles: " + now);
            if (done >= 4 * tenth && done <= 5 * tenth) {
                middle = now.lowest(middle);
            }
        }
        // Memory of a compiler is freed in time, but lost memory stays lost.
        for (int looks = 0; looks < 20 && now.exceeds(middle); looks++) {
            Thread.sleep(500);
            now = now.lowest(Usage.now());
            System.out.println("after a while: " + now);
        }
        burners.forEach(Thread::interrupt);
        if (during.threads <= now.threads
                || during.descriptors + during.timers <= now.descriptors + now.timers) {
            throw new IllegalStateException(
                    "a session shows in nothing: what remained of one would not either");
        }
        boolean hasGrown = now.exceeds(middle);
        System.out.println(hasGrown ? "StartStop: something remains" : "StartStop done");
        System.exit(hasGrown ? 1 : 0);
    }

    private static List<Thread> startBurners() {
        List<Thread> burners = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            Thread burner = new Thread(StartStop::burn, "burner-" + i);
            burner.setDaemon(true);
            burner.start();
            burners.add(burner);
        }
        return burners;
    }

    private static void burn() {
        while (!Thread.interrupted()) {
            long x = Native.recurse(20, 10_000);
            for (int i = 0; i < 10_000; i++) {
                x = Work.mix(x);
            }
            Work.sink = x;
        }
    }

    private static void cycle(String library, String options, int cycles) {
        for (int i = 0; i < cycles; i++) {
            // The parity decides whether the stop follows the start at once or after samples.
            drive(library, options);
            if (i % 2 == 0) {
                Work.sink = Native.spin(1_000_000);
            }
            drive(library, "stop");
        }
    }

    private static void drive(String library, String options) {
        int result = Native.driveAgent(library, options);
        if (result != 0) {
            throw new IllegalStateException(library + " " + options + ": " + result);
        }
    }

    /** The resources that a process holds. */
    private static final class Usage {
        private final long threads;
        private final long descriptors;
        private final long timers;
        private final long heapBytes;
        private final long residentBytes;

        private Usage(long threads, long descriptors, long timers, long heapBytes, long residentBytes) {
            this.threads = threads;
            this.descriptors = descriptors;
            this.timers = timers;
            this.heapBytes = heapBytes;
            this.residentBytes = residentBytes;
        }

        static Usage now() throws IOException, InterruptedException {
            System.gc();
            // The VM's own threads start and end, and its compilers' memory varies, so the lowest of several
            // measurements counts.
            long threads = Long.MAX_VALUE;
            long heapBytes = Long.MAX_VALUE;
            long residentBytes = Long.MAX_VALUE;
            for (int i = 0; i < 10; i++) {
                threads = Math.min(threads, count("/proc/self/task"));
                heapBytes = Math.min(heapBytes, Native.allocatedBytes());
                residentBytes = Math.min(residentBytes, residentBytes());
                Thread.sleep(50);
            }
            long timers = lines("/proc/self/timers").stream().filter(line -> line.startsWith("ID:")).count();
            return new Usage(threads, count("/proc/self/fd"), timers, heapBytes, residentBytes);
        }

        private static long count(String directory) throws IOException {
            try (Stream<Path> entries = Files.list(Path.of(directory))) {
                return entries.count();
            }
        }

        private static List<String> lines(String file) throws IOException {
            return Files.readAllLines(Path.of(file));
        }

        private static long residentBytes() throws IOException {
            for (String line : lines("/proc/self/status")) {
                if (line.startsWith("VmRSS:")) {
                    return Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
                }
            }
            throw new IOException("no VmRSS in /proc/self/status");
        }

        /** The lower of both values for each resource. */
        Usage lowest(Usage other) {
            return other == null
                    ? this
                    : new Usage(
                            Math.min(threads, other.threads),
                            Math.min(descriptors, other.descriptors),
                            Math.min(timers, other.timers),
                            Math.min(heapBytes, other.heapBytes),
                            Math.min(residentBytes, other.residentBytes));
        }

        boolean exceeds(Usage before) {
            return threads > before.threads
                    || descriptors > before.descriptors
                    || timers > before.timers
                    || heapBytes - before.heapBytes > HEAP_BYTES
                    || residentBytes - before.residentBytes > RESIDENT_BYTES;
        }

        @Override
        public String toString() {
            return "threads=" + threads + " descriptors=" + descriptors + " timers=" + timers
                    + " allocated=" + (heapBytes >> 10) + "KiB resident=" + (residentBytes >> 10) + "KiB";
        }
    }
}
