package programs;

import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.locks.LockSupport;

/**
 * Causes known numbers of events: {@code PerfEvents faults|parks|calls TIMES}, in a thread that starts and
 * ends meanwhile and in one that existed before. Each line is {@code THREAD NUMBER MORE SLEEPS}: the number
 * of events, the number of further events that may be counted, and how often the thread has gone to sleep.
 */
public final class PerfEvents {
    private static final int PAGE = 4096;

    private PerfEvents() {}

    /** Work that is repeated {@code times} times. */
    private interface Work {
        void times(int times) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        int times = Integer.parseInt(args[1]);
        Work work;
        switch (args[0]) {
            case "faults":
                work = PerfEvents::touch;
                break;
            case "parks":
                work = PerfEvents::park;
                break;
            default:
                work = PerfEvents::call;
        }
        Thread thread = new Thread(() -> run("fresh", args[0], times, work), "fresh");
        thread.start();
        thread.join();
        run("main", args[0], times, work);
    }

    private static void run(String name, String kind, int times, Work work) {
        try {
            Counts before = Counts.now();
            work.times(times);
            Counts after = Counts.now();
            long number = kind.equals("faults") ? after.faults - before.faults : times;
            long more = kind.equals("parks") ? after.preempted - before.preempted : 0;
            System.out.println(name + " " + number + " " + more + " " + (after.sleeps - before.sleeps));
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /** Writes to private pages of a mapped file. The kernel copies each page at its first write. */
    private static void touch(int pages) throws Exception {
        Path path = Files.createTempFile("pages", ".bin");
        try (FileChannel channel =
                FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            channel.truncate(0);
            channel.write(java.nio.ByteBuffer.allocate(1), (long) pages * PAGE - 1);
            MappedByteBuffer map = channel.map(FileChannel.MapMode.PRIVATE, 0, (long) pages * PAGE);
            for (int page = 0; page < pages; page++) {
                map.put(page * PAGE, (byte) 1);
            }
        } finally {
            Files.delete(path);
        }
    }

    private static void park(int times) {
        for (int i = 0; i < times; i++) {
            LockSupport.parkNanos(200_000);
        }
    }

    private static void call(int times) {
        for (int i = 0; i < times; i++) {
            Native.spin(1);
        }
    }

    /** The kernel's counts for the current thread (proc(5), /proc/pid/stat and status). */
    private static final class Counts {
        private final long faults;
        private final long preempted;
        private final long sleeps;

        private Counts(long faults, long preempted, long sleeps) {
            this.faults = faults;
            this.preempted = preempted;
            this.sleeps = sleeps;
        }

        static Counts now() throws Exception {
            String stat = Files.readString(Path.of("/proc/thread-self/stat"));
            // The name, field 2, may contain any characters. The first field after it is field 3.
            String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
            long preempted = 0;
            long sleeps = 0;
            for (String line : Files.readAllLines(Path.of("/proc/thread-self/status"))) {
                if (line.startsWith("nonvoluntary_ctxt_switches:")) {
                    preempted = Long.parseLong(line.substring(line.indexOf(':') + 1).trim());
                } else if (line.startsWith("voluntary_ctxt_switches:")) {
                    sleeps = Long.parseLong(line.substring(line.indexOf(':') + 1).trim());
                }
            }
            long faults = Long.parseLong(fields[10 - 3]) + Long.parseLong(fields[12 - 3]);
            return new Counts(faults, preempted, sleeps);
        }
    }
}
