package programs;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;

/**
 * A fixed amount of work at the bottom of stacks of a known depth: {@code FixedWork DEPTH ROUNDS}. Prints the
 * CPU time of the process and the wall time of the work, without warm-up and the VM's start.
 *
 * <p>There are many different stacks: at each level one of eight methods is called. The call cannot be
 * inlined, since it has all of them as targets.
 */
public final class FixedWork {
    /**
     * Some tens of microseconds at the bottom of each stack, compared with which the descent takes little
     * time.
     */
    private static final int BOTTOM_ROUNDS = 20_000;

    /** Number of different stacks. */
    private static final int WAYS = 64;

    private FixedWork() {}

    private abstract static class Level {
        abstract long go(int depth, long way);
    }

    private static final class Level0 extends Level {
        @Override
        long go(int depth, long way) {
            return Work.mix(next(depth, way + 1));
        }
    }

    private static final class Level1 extends Level {
        @Override
        long go(int depth, long way) {
            return Work.mix(next(depth, way + 3)) + 1;
        }
    }

    private static final class Level2 extends Level {
        @Override
        long go(int depth, long way) {
            return Work.mix(next(depth, way + 5)) + 2;
        }
    }

    private static final class Level3 extends Level {
        @Override
        long go(int depth, long way) {
            return Work.mix(next(depth, way * 3)) + 3;
        }
    }

    private static final class Level4 extends Level {
        @Override
        long go(int depth, long way) {
            return Work.mix(next(depth, way * 5)) + 4;
        }
    }

    private static final class Level5 extends Level {
        @Override
        long go(int depth, long way) {
            return Work.mix(next(depth, way * 7)) + 5;
        }
    }

    private static final class Level6 extends Level {
        @Override
        long go(int depth, long way) {
            return Work.mix(next(depth, way ^ 5)) + 6;
        }
    }

    private static final class Level7 extends Level {
        @Override
        long go(int depth, long way) {
            return Work.mix(next(depth, way ^ 3)) + 7;
        }
    }

    private static final Level[] LEVELS = {
        new Level0(), new Level1(), new Level2(), new Level3(),
        new Level4(), new Level5(), new Level6(), new Level7(),
    };

    private static long next(int depth, long way) {
        if (depth > 1) {
            return LEVELS[(int) (way & 7)].go(depth - 1, way);
        }
        long value = way;
        for (int round = 0; round < BOTTOM_ROUNDS; round++) {
            value = Work.mix(value);
        }
        return value;
    }

    public static void main(String[] args) {
        int depth = Integer.parseInt(args[0]);
        int rounds = Integer.parseInt(args[1]);
        run(depth, rounds / 4);
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long cpu = system.getProcessCpuTime();
        long wall = System.nanoTime();
        run(depth, rounds);
        wall = System.nanoTime() - wall;
        cpu = system.getProcessCpuTime() - cpu;
        System.out.println(
                "cpu_ns=" + cpu + " wall_ns=" + wall + " process_cpu_ns=" + system.getProcessCpuTime());
    }

    private static void run(int depth, int rounds) {
        for (int round = 0; round < rounds; round++) {
            Work.sink = next(depth, round % WAYS);
        }
    }
}
