package programs;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;

/**
 * Allocates known numbers of objects of known sizes at known places, drops some of them, and collects: {@code
 * LiveObjects [virtual]}. Each line is {@code METHOD CLASS BYTES OBJECTS COLLECTIONS}, for the objects alive
 * at the end, with the number of collections since their allocation. With an argument, a virtual thread does
 * all the work.
 *
 * <p>The sizes are those of a 64-bit HotSpot with compressed class pointers, as in {@link Allocations}. From
 * JDK 27 on an object's header has 8 bytes instead of 12.
 */
public final class LiveObjects {
    private static final int SMALL = 900_000;
    private static final int ARRAYS = 20_000;
    private static final int LARGE = 30;

    private LiveObjects() {}

    /** The header, the reference to the next object, 16 bytes of fields. */
    private static final class Small {
        Small next;
        long a;
        long b;

        Small(Small next) {
            this.next = next;
        }
    }

    private static volatile Object kept;
    private static final List<Object> LISTS = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        Threads.start(args.length > 0, "live-objects", LiveObjects::all).join();
    }

    private static void all() {
        Object[] old = new Object[ARRAYS];
        arrays(old);
        LISTS.add(old);
        large();
        long beforeOld = collections();
        System.gc();
        System.gc();
        System.gc();
        LISTS.add(small());
        long beforeYoung = collections();
        dropped();
        kept = null;
        System.gc();
        System.gc();
        long end = collections();
        report("arrays", "int[]", 16 + 4 * 250, ARRAYS, end - beforeOld);
        // Some collectors cannot compress references.
        boolean isCompressed = ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class)
                .getVMOption("UseCompressedOops").getValue().equals("true");
        report("large", "java.lang.Object[]", 16 + (isCompressed ? 4 : 8) * 250_000, LARGE, end - beforeOld);
        // A wide reference ends at 24 bytes after a header of 12, and at 16 after one of 8.
        int beforeFields = isCompressed || Runtime.version().feature() >= 27 ? 16 : 24;
        report("small", "programs.LiveObjects$Small", beforeFields + 16, SMALL, end - beforeYoung);
        report("dropped", "long[]", 16 + 8 * 125, 0, 0);
    }

    private static void report(String method, String type, long bytes, long objects, long collections) {
        System.out.println(method + " " + type + " " + bytes * objects + " " + objects + " " + collections);
    }

    private static long collections() {
        long count = 0;
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            count += Math.max(0, collector.getCollectionCount());
        }
        return count;
    }

    private static Object small() {
        Small last = null;
        for (int i = 0; i < SMALL; i++) {
            last = new Small(last);
        }
        return last;
    }

    private static void arrays(Object[] into) {
        for (int i = 0; i < into.length; i++) {
            into[i] = new int[250];
        }
    }

    private static void large() {
        for (int i = 0; i < LARGE; i++) {
            LISTS.add(new Object[250_000]);
        }
    }

    private static void dropped() {
        for (int i = 0; i < 5_000; i++) {
            kept = new long[125];
        }
    }
}
