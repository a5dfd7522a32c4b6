package programs;

import java.util.Arrays;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Programs whose call trees are known by construction: {@code Situations NAME [SECONDS]}. Two threads burn in
 * the named situation. {@code grammars/Situations.txt} lists which method calls which.
 */
public final class Situations {
    private Situations() {}

    public static void main(String[] args) throws InterruptedException {
        run(situation(args[0]), situation(args[0]), args);
    }

    /** Burns in both situations, each on its own thread, for the seconds in the second argument. */
    static void run(Situation one, Situation other, String[] args) throws InterruptedException {
        Clock clock = new Clock(Arrays.copyOfRange(args, 1, args.length), 10);
        Thread first = new Worker(one, clock);
        Thread second = new Worker(other, clock);
        // The threads are daemons, so that the program ends whatever happens to them.
        first.setDaemon(true);
        second.setDaemon(true);
        first.start();
        second.start();
        while (clock.isRunning()) {
            Thread.sleep(10);
        }
    }

    private static Situation situation(String name) {
        switch (name) {
            case "allocation":
                return new Allocation();
            case "locks":
                return new Locks();
            case "calls":
                return new Calls();
            case "exceptions":
                return new Exceptions();
            case "strings":
                return new Strings();
            case "text":
                return new Text();
            case "upcalls":
                return new Upcalls();
            default:
                throw new IllegalArgumentException(name);
        }
    }

    /** Does some milliseconds of work. */
    abstract static class Situation {
        abstract void burn();
    }

    static final class Worker extends Thread {
        private final Situation situation;
        private final Clock clock;

        Worker(Situation situation, Clock clock) {
            this.situation = situation;
            this.clock = clock;
        }

        @Override
        public void run() {
            boolean isRunning = true;
            while (isRunning) {
                try {
                    situation.burn();
                    isRunning = clock.isRunning();
                } catch (InternalError e) {
                    // Caused by a fault in mapped memory. Up to JDK 17 the VM throws the error later, at
                    // the next call into it.
                    Work.sink++;
                }
            }
        }
    }

    /** Trees that die young, and a window of trees that live for a while. */
    static final class Allocation extends Situation {
        private final Tree[] window = new Tree[64];
        private int next;

        @Override
        void burn() {
            for (int i = 0; i < 16; i++) {
                window[next++ & 63] = grow(10);
            }
        }

        private static Tree grow(int depth) {
            return depth == 0 ? new Tree(null, null) : new Tree(grow(depth - 1), grow(depth - 1));
        }

        static final class Tree {
            final Tree left;
            final Tree right;
            final byte[] fruit;

            Tree(Tree left, Tree right) {
                this.left = left;
                this.right = right;
                fruit = left == null ? new byte[100] : null;
            }
        }
    }

    /** Two kinds of locks for which the threads contend. */
    static final class Locks extends Situation {
        private static final Object MONITOR = new Object();
        private static final ReentrantLock LOCK = new ReentrantLock();

        @Override
        void burn() {
            for (int i = 0; i < 200; i++) {
                inMonitor();
                inLock();
            }
        }

        private static void inMonitor() {
            synchronized (MONITOR) {
                work();
            }
        }

        private static void inLock() {
            LOCK.lock();
            try {
                work();
            } finally {
                LOCK.unlock();
            }
        }

        private static void work() {
            long x = Work.sink;
            for (int i = 0; i < 200; i++) {
                x = Work.mix(x);
            }
            Work.sink = x;
        }
    }

    interface Shape {
        long area(long x);
    }

    abstract static class Body {
        abstract long volume(long x);
    }

    /** Calls with many targets, through vtables and itables. */
    static final class Calls extends Situation {
        private final Shape[] shapes = {new Circle(), new Square(), new Triangle(), new Star(), new Point()};
        private final Body[] bodies = {new Ball(), new Cube(), new Cone(), new Tube(), new Ring()};

        @Override
        void burn() {
            long x = 1;
            for (int i = 0; i < 100_000; i++) {
                x = measure(shapes[i % 5], x) + weigh(bodies[i % 5], x);
            }
            Work.sink = x;
        }

        private static long measure(Shape shape, long x) {
            return shape.area(x) + 1;
        }

        private static long weigh(Body body, long x) {
            return body.volume(x) + 1;
        }
    }

    static final class Circle implements Shape {
        @Override
        public long area(long x) {
            return Work.mix(x) + 1;
        }
    }

    static final class Square implements Shape {
        @Override
        public long area(long x) {
            return Work.mix(x) + 2;
        }
    }

    static final class Triangle implements Shape {
        @Override
        public long area(long x) {
            return Work.mix(x) + 3;
        }
    }

    static final class Star implements Shape {
        @Override
        public long area(long x) {
            return Work.mix(x) + 4;
        }
    }

    static final class Point implements Shape {
        @Override
        public long area(long x) {
            return Work.mix(x) + 5;
        }
    }

    static final class Ball extends Body {
        @Override
        long volume(long x) {
            return Work.mix(x) + 1;
        }
    }

    static final class Cube extends Body {
        @Override
        long volume(long x) {
            return Work.mix(x) + 2;
        }
    }

    static final class Cone extends Body {
        @Override
        long volume(long x) {
            return Work.mix(x) + 3;
        }
    }

    static final class Tube extends Body {
        @Override
        long volume(long x) {
            return Work.mix(x) + 4;
        }
    }

    static final class Ring extends Body {
        @Override
        long volume(long x) {
            return Work.mix(x) + 5;
        }
    }

    /** Exceptions that unwind a recursion. */
    static final class Exceptions extends Situation {
        @Override
        void burn() {
            for (int i = 0; i < 100; i++) {
                attempt(30);
            }
        }

        private static void attempt(int depth) {
            try {
                fall(depth, 1);
            } catch (Fall fall) {
                Work.sink = fall.value;
            }
        }

        private static void fall(int depth, long x) {
            if (depth == 0) {
                throw new Fall(Work.mix(x));
            }
            try {
                fall(depth - 1, Work.mix(x));
            } finally {
                Work.sink = x;
            }
        }

        static final class Fall extends RuntimeException {
            private static final long serialVersionUID = 1;
            final long value;

            Fall(long value) {
                this.value = value;
            }
        }
    }

    /** Concatenation by invokedynamic, lambdas, and the library's own loops over them. */
    static final class Strings extends Situation {
        @Override
        void burn() {
            for (int i = 0; i < 500; i++) {
                Work.sink += join(i, "burn") + count(i);
            }
        }

        private static int join(int i, String text) {
            String joined = text + i + ':' + (i * 31L) + text;
            return joined.hashCode();
        }

        private static long count(int i) {
            return java.util.stream.IntStream.range(i, i + 50)
                    .filter(n -> n % 3 == 0)
                    .mapToLong(n -> n * 31L)
                    .sum();
        }
    }

    /**
     * Strings that are compared, and searched in one another: of one byte a character, of two, and of both.
     */
    static final class Text extends Situation {
        private static final String[] TEXTS = {
            "one long name after another, which differ at their end alone: 1",
            "one long name after another, which differ at their end alone: 2",
            "one long name after another, which differ at their \u0416nd alone: 1",
            "one long name after another, which differ at their \u0416nd alone: 2",
        };
        private static final String[] WANTED = {"end alone: 2", "\u0416nd alone: 2", "another", "?"};

        @Override
        void burn() {
            for (int i = 0; i < 2_000; i++) {
                Work.sink += compare(TEXTS[i & 3], TEXTS[i >> 2 & 3])
                        + search(TEXTS[i & 3], WANTED[i >> 2 & 3]);
            }
        }

        private static int compare(String one, String other) {
            return one.compareTo(other);
        }

        private static int search(String text, String wanted) {
            return text.indexOf(wanted) + text.indexOf("alone");
        }
    }

    /** Java, native code and Java again, six times, with a native recursion at the bottom. */
    static final class Upcalls extends Situation {
        @Override
        void burn() {
            descend(6);
        }

        private static void descend(int depth) {
            if (depth == 0) {
                Work.sink = Native.recurse(6, 100_000);
            } else {
                Native.upcall(new Descent(depth - 1));
            }
        }

        static final class Descent implements Runnable {
            private final int depth;

            Descent(int depth) {
                this.depth = depth;
            }

            @Override
            public void run() {
                descend(depth);
            }
        }
    }
}
