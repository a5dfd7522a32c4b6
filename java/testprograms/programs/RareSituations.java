package programs;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.MutableCallSite;
import java.lang.ref.WeakReference;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.function.LongSupplier;
import java.util.zip.CRC32;
import java.util.zip.CRC32C;
import java.util.zip.Deflater;
import javax.crypto.Cipher;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * Situations that are rare in a VM, all the time: {@code RareSituations NAME [SECONDS]}. Two threads burn in
 * the named situation. {@code grammars/RareSituations.txt} lists which method calls which.
 */
public final class RareSituations {
    private RareSituations() {}

    public static void main(String[] args) throws Exception {
        Situations.run(situation(args[0]), situation(args[0]), args);
    }

    private static Situations.Situation situation(String name) throws Exception {
        switch (name) {
            case "critical":
                return new Critical();
            case "deoptimisation":
                return new Deoptimisation();
            case "entries":
                return new Entries();
            case "faults":
                return new Faults();
            case "functions":
                return new Functions();
            case "intrinsics":
                return new Intrinsics();
            case "invalidation":
                return new Invalidation();
            case "nulls":
                return new Nulls();
            case "overflow":
                return new Overflow();
            case "recursion":
                return new Recursion();
            case "references":
                return new References();
            case "signals":
                return new Signals();
            case "subtypes":
                return new Subtypes();
            default:
                throw new IllegalArgumentException(name);
        }
    }

    /** Makes collections follow one another while the program runs. */
    private static void keepCollecting() {
        Thread collecting = new Thread(
                () -> {
                    while (true) {
                        System.gc();
                    }
                },
                "collecting");
        collecting.setDaemon(true);
        collecting.start();
    }

    /** Native code that holds arrays by GetPrimitiveArrayCritical, so that no collection may move them. */
    static final class Critical extends Situations.Situation {
        private final byte[] input = new byte[64 * 1024];
        private final byte[] output = new byte[80 * 1024];

        Critical() {
            for (int i = 0; i < input.length; i++) {
                input[i] = (byte) (i * i >>> 7);
            }
        }

        @Override
        void burn() {
            for (int i = 0; i < 4; i++) {
                Work.sink += deflate();
            }
        }

        private int deflate() {
            Deflater deflater = new Deflater();
            deflater.setInput(input);
            deflater.finish();
            int length = deflater.deflate(output);
            deflater.end();
            return length;
        }
    }

    /**
     * Code that is compiled anew in each round: its class is loaded again, so that no types are profiled yet.
     */
    public static final class Victim implements LongSupplier {
        private long sum;

        @Override
        public long getAsLong() {
            Object[] one = {1, 2, 3, 4, 5, 6, 7, 8};
            for (int i = 0; i < 3_000; i++) {
                sum += add(one);
            }
            loop();
            // Code that was compiled for one type now receives others.
            Object[] other = {1L, 2L, "3", 4, 5.0, 6, 'c', 8};
            for (int i = 0; i < 300; i++) {
                sum += add(other);
            }
            return sum;
        }

        private static long add(Object[] values) {
            long sum = 0;
            for (Object value : values) {
                sum += value.hashCode();
            }
            return sum;
        }

        /** A loop that is long enough to be replaced while it runs. */
        private void loop() {
            long value = sum;
            for (int i = 0; i < 400_000; i++) {
                value = value * 31 + i;
            }
            sum = value;
        }
    }

    /** Compilation, on-stack replacement and deoptimisation, again and again. */
    static final class Deoptimisation extends Situations.Situation {
        private final byte[] victim;

        Deoptimisation() throws IOException {
            try (java.io.InputStream in =
                    RareSituations.class.getResourceAsStream("RareSituations$Victim.class")) {
                victim = in.readAllBytes();
            }
        }

        private final class Loader extends ClassLoader {
            Loader() {
                super(RareSituations.class.getClassLoader());
            }

            @Override
            protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
                if (name.equals(Victim.class.getName())) {
                    return defineClass(name, victim, 0, victim.length);
                }
                return super.loadClass(name, resolve);
            }
        }

        @Override
        void burn() {
            try {
                Class<?> type = new Loader().loadClass(Victim.class.getName());
                Work.sink = ((LongSupplier) type.getDeclaredConstructor().newInstance()).getAsLong();
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    /**
     * Many compiled methods, each of which the VM visits again when it is first entered during a collection.
     */
    static final class Entries extends Situations.Situation {
        private static final int METHODS = 2_000;
        private static final MethodHandle[] ENTERED = new MethodHandle[METHODS];

        static {
            MethodType type = MethodType.methodType(long.class, long.class, int.class);
            try {
                for (int number = 1; number <= METHODS; number++) {
                    Class<?> one = MethodHandles.lookup().defineClass(StormClass.bytes(number));
                    String name = StormClass.methodName(number);
                    ENTERED[number - 1] = MethodHandles.lookup().findStatic(one, name, type);
                }
            } catch (ReflectiveOperationException e) {
                throw new ExceptionInInitializerError(e);
            }
            keepCollecting();
        }

        @Override
        void burn() {
            try {
                for (MethodHandle method : ENTERED) {
                    Work.sink += (long) method.invokeExact(1L, 1);
                }
            } catch (Throwable e) {
                throw new IllegalStateException(e);
            }
        }
    }

    /** Loads from a mapped file that was truncated. The VM turns the signal into an InternalError. */
    static final class Faults extends Situations.Situation {
        private static final int SIZE = 4096;
        private final MappedByteBuffer mapped;

        Faults() throws IOException {
            Path path = Files.createTempFile("faults", null);
            try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
                file.setLength(SIZE);
                mapped = file.getChannel().map(FileChannel.MapMode.READ_ONLY, 0, SIZE);
                file.setLength(0);
            } finally {
                Files.delete(path);
            }
        }

        @Override
        void burn() {
            for (int i = 0; i < 500; i++) {
                try {
                    Work.sink += load(i);
                } catch (InternalError e) {
                    Work.sink++;
                }
            }
        }

        private long load(int at) {
            return mapped.getLong(at);
        }
    }

    /** Functions that the interpreter enters without a frame. Stubs or C functions do the work. */
    static final class Functions extends Situations.Situation {
        @Override
        void burn() {
            for (int i = 0; i < 20; i++) {
                Work.sink += (long) compute(i);
            }
        }

        private static double compute(int i) {
            double x = i;
            for (int n = 0; n < 200; n++) {
                x = Math.sin(x) + Math.cos(x) + Math.tan(x) + Math.exp(-x * x);
                x += Math.log(x * x + 2) + Math.log10(x * x + 2) + Math.pow(x * x + 1, 0.3);
            }
            return x;
        }
    }

    /** Stubs by which the VM replaces library methods. */
    static final class Intrinsics extends Situations.Situation {
        private final byte[] bytes = new byte[16 * 1024 + 5];
        private final byte[] others = new byte[bytes.length];
        private final Object[] objects = new Object[2048];
        private final Object[] copies = new String[objects.length];
        private final Cipher cipher;

        Intrinsics() throws GeneralSecurityException {
            Arrays.fill(objects, "text");
            cipher = Cipher.getInstance("AES/CTR/NoPadding");
            SecretKeySpec key = new SecretKeySpec(new byte[16], "AES");
            cipher.init(Cipher.ENCRYPT_MODE, key, new IvParameterSpec(new byte[16]));
        }

        @Override
        void burn() {
            for (int i = 0; i < 20; i++) {
                copy(i & 7);
                sum();
                encrypt();
                compute(i);
            }
        }

        private void copy(int from) {
            for (int i = 0; i < 20; i++) {
                System.arraycopy(bytes, from, others, 3, bytes.length - 8);
                System.arraycopy(others, 0, others, 1, others.length - 1);
                System.arraycopy(objects, 0, copies, 0, objects.length);
            }
        }

        private void sum() {
            CRC32 crc = new CRC32();
            crc.update(bytes);
            CRC32C crcC = new CRC32C();
            crcC.update(bytes, 0, bytes.length);
            Work.sink += crc.getValue() + crcC.getValue() + (Arrays.equals(bytes, others) ? 1 : 0);
        }

        private void encrypt() {
            try {
                Work.sink += cipher.update(bytes, 0, bytes.length, others);
            } catch (GeneralSecurityException e) {
                throw new IllegalStateException(e);
            }
        }

        private void compute(int i) {
            double x = i;
            for (int n = 0; n < 1000; n++) {
                x = Math.sin(x) + Math.log(x * x + 2) + Math.pow(x * x + 1, 0.3) + Math.exp(-x * x);
            }
            Work.sink += (long) x;
        }
    }

    /**
     * A recursion whose code is invalidated at its deepest point, by a change of the target of an inlined
     * call. Each of its frames is deoptimised when a callee returns to it.
     */
    static final class Invalidation extends Situations.Situation {
        private static final int DEPTH = 300;
        private static final MethodHandle[] TARGETS = {target("one"), target("other")};
        private static final MutableCallSite SITE = new MutableCallSite(TARGETS[0]);
        private static final MethodHandle CALL = SITE.dynamicInvoker();
        private int round;

        private static MethodHandle target(String name) {
            try {
                MethodType type = MethodType.methodType(long.class, long.class);
                return MethodHandles.lookup().findStatic(Invalidation.class, name, type);
            } catch (ReflectiveOperationException e) {
                throw new ExceptionInInitializerError(e);
            }
        }

        @Override
        void burn() {
            try {
                // Often enough to be compiled.
                for (int i = 0; i < 100; i++) {
                    Work.sink = descend(DEPTH, i, null);
                }
                Work.sink = descend(DEPTH, 0, TARGETS[++round & 1]);
            } catch (Throwable e) {
                throw new IllegalStateException(e);
            }
        }

        private static long descend(int depth, long x, MethodHandle target) throws Throwable {
            if (depth > 0) {
                return descend(depth - 1, (long) CALL.invokeExact(x), target) + 1;
            }
            if (target != null) {
                SITE.setTarget(target);
            }
            return x;
        }

        private static long one(long x) {
            return x * 31 + 1;
        }

        private static long other(long x) {
            return x * 37 + 2;
        }
    }

    /** Null pointers that the hardware detects. The VM's handler turns the fault into an exception. */
    static final class Nulls extends Situations.Situation {
        private long value;

        @Override
        void burn() {
            for (int i = 0; i < 200; i++) {
                try {
                    Work.sink = read(i % 3 == 0 ? this : null);
                } catch (NullPointerException e) {
                    Work.sink++;
                }
            }
        }

        private static long read(Nulls nulls) {
            return Work.mix(nulls.value++);
        }
    }

    /** Stack overflows. The many arguments keep the number of frames below the limit of recorded frames. */
    static final class Overflow extends Situations.Situation {
        @Override
        void burn() {
            try {
                Work.sink = dive(
                        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
                        13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24);
            } catch (StackOverflowError e) {
                Work.sink++;
            }
        }

        @SuppressWarnings("InfiniteRecursion")
        private static long dive(
                long a, long b, long c, long d, long e, long f, long g, long h,
                long i, long j, long k, long l, long m, long n, long o, long p,
                long q, long r, long s, long t, long u, long v, long w, long x) {
            return Work.mix(dive(
                            b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x,
                            Work.mix(a)))
                    + x;
        }
    }

    /** A recursion nearly as deep as the limit of recorded frames. */
    static final class Recursion extends Situations.Situation {
        private static final int DEPTH = 2000;

        @Override
        void burn() {
            Work.sink = descend(DEPTH, 1);
        }

        private static long descend(int depth, long x) {
            if (depth == 0) {
                long value = x;
                for (int i = 0; i < 20_000; i++) {
                    value = Work.mix(value);
                }
                return value;
            }
            return Work.mix(descend(depth - 1, x + depth));
        }
    }

    /** Weak references that are read while one collection after the other marks live objects. */
    static final class References extends Situations.Situation {
        /** Enough objects for marking to take some time. */
        private static final Object[] ALIVE = new Object[2000];

        static {
            for (int i = 0; i < ALIVE.length; i++) {
                Object[] objects = new Object[500];
                Arrays.setAll(objects, n -> new Object());
                ALIVE[i] = objects;
            }
            keepCollecting();
        }

        private final WeakReference<Object> reference = new WeakReference<>(ALIVE[0]);

        @Override
        void burn() {
            for (int i = 0; i < 10_000; i++) {
                Work.sink += read(reference);
            }
        }

        private static int read(WeakReference<Object> reference) {
            return reference.get() == ALIVE[0] ? 1 : 0;
        }
    }

    interface I0 {}

    interface I1 {}

    interface I2 {}

    interface I3 {}

    interface I4 {}

    interface I5 {}

    interface I6 {}

    interface I7 {}

    interface I8 {}

    interface I9 {}

    private static class Few implements I0, I1, I2, I3, I4 {}

    private static final class Many extends Few implements I5, I6, I7, I8 {}

    /** A signal handler in native code that Java has called. */
    static final class Signals extends Situations.Situation {
        @Override
        void burn() {
            Work.sink += Native.signalled(50_000);
        }
    }

    /** Type checks that only a search through all interfaces answers. */
    static final class Subtypes extends Situations.Situation {
        private final Object[] objects = {new Few(), new Many(), "text", new Many(), new Few()};
        private final I4[] stored = new I4[2];

        @Override
        void burn() {
            for (int i = 0; i < 100_000; i++) {
                Work.sink += ask(objects[i % 5]);
            }
        }

        private int ask(Object object) {
            int answer = 0;
            if (object instanceof I9) {
                answer |= 1;
            }
            if (object instanceof I8) {
                answer |= 2;
            }
            if (object instanceof I4) {
                stored[0] = (I4) object;
                answer |= 4;
            }
            return answer;
        }
    }
}
