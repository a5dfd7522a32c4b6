package programs;

/**
 * Methods that spend their time where the interpreter enters and leaves them: {@code InterpretedEntries
 * [SECONDS]}, with {@code -Xint}. The time by which a call exceeds one of {@code plain}, which has the same
 * code, is spent on the entry and the exit of the called method. The time of a loop without a call is the
 * caller's. At the end the program prints the least and the greatest share of each caller's time that the
 * called method can have, in thousandths.
 */
public final class InterpretedEntries {
    private static final int CALLS = 2_000;

    private InterpretedEntries() {}

    public static void main(String[] args) {
        Clock clock = new Clock(args, 5);
        // The shortest times are those in which no other thread had the CPU.
        long loopNs = Long.MAX_VALUE;
        long plainNs = Long.MAX_VALUE;
        long roomyNs = Long.MAX_VALUE;
        long lockedNs = Long.MAX_VALUE;
        while (clock.isRunning()) {
            long begin = System.nanoTime();
            callNothing();
            long start = System.nanoTime();
            callPlain();
            long plain = System.nanoTime();
            callRoomy();
            long roomy = System.nanoTime();
            callLocked();
            long locked = System.nanoTime();
            loopNs = Math.min(loopNs, start - begin);
            plainNs = Math.min(plainNs, plain - start);
            roomyNs = Math.min(roomyNs, roomy - plain);
            lockedNs = Math.min(lockedNs, locked - roomy);
        }
        report("roomy", loopNs, plainNs, roomyNs);
        report("locked", loopNs, plainNs, lockedNs);
    }

    private static void report(String name, long loopNs, long plainNs, long ns) {
        System.out.println(name + " " + 1000 * (ns - plainNs) / ns + " " + 1000 * (ns - loopNs) / ns);
    }

    /** The same loop with an addition in place of the call. */
    private static void callNothing() {
        int x = 1;
        for (int i = 0; i < CALLS; i++) {
            x = x + x;
        }
        Work.sink = x;
    }

    private static void callPlain() {
        int x = 1;
        for (int i = 0; i < CALLS; i++) {
            x = plain(x);
        }
        Work.sink = x;
    }

    private static void callRoomy() {
        int x = 1;
        for (int i = 0; i < CALLS; i++) {
            x = roomy(x);
        }
        Work.sink = x;
    }

    private static void callLocked() {
        int x = 1;
        for (int i = 0; i < CALLS; i++) {
            x = locked(x);
        }
        Work.sink = x;
    }

    private static int plain(int x) {
        if (x == 0) {
            return 1;
        }
        return x;
    }

    /** Its entry clears 240 words before it has a frame. */
    private static int roomy(int x) {
        if (x == 0) {
            long a0 = x; long a1 = a0 + 1; long a2 = a1 + 1; long a3 = a2 + 1;
            long a4 = a3 + 1; long a5 = a4 + 1; long a6 = a5 + 1; long a7 = a6 + 1;
            long a8 = a7 + 1; long a9 = a8 + 1; long a10 = a9 + 1; long a11 = a10 + 1;
            long a12 = a11 + 1; long a13 = a12 + 1; long a14 = a13 + 1; long a15 = a14 + 1;
            long a16 = a15 + 1; long a17 = a16 + 1; long a18 = a17 + 1; long a19 = a18 + 1;
            long a20 = a19 + 1; long a21 = a20 + 1; long a22 = a21 + 1; long a23 = a22 + 1;
            long a24 = a23 + 1; long a25 = a24 + 1; long a26 = a25 + 1; long a27 = a26 + 1;
            long a28 = a27 + 1; long a29 = a28 + 1; long a30 = a29 + 1; long a31 = a30 + 1;
            long a32 = a31 + 1; long a33 = a32 + 1; long a34 = a33 + 1; long a35 = a34 + 1;
            long a36 = a35 + 1; long a37 = a36 + 1; long a38 = a37 + 1; long a39 = a38 + 1;
            long a40 = a39 + 1; long a41 = a40 + 1; long a42 = a41 + 1; long a43 = a42 + 1;
            long a44 = a43 + 1; long a45 = a44 + 1; long a46 = a45 + 1; long a47 = a46 + 1;
            long a48 = a47 + 1; long a49 = a48 + 1; long a50 = a49 + 1; long a51 = a50 + 1;
            long a52 = a51 + 1; long a53 = a52 + 1; long a54 = a53 + 1; long a55 = a54 + 1;
            long a56 = a55 + 1; long a57 = a56 + 1; long a58 = a57 + 1; long a59 = a58 + 1;
            long a60 = a59 + 1; long a61 = a60 + 1; long a62 = a61 + 1; long a63 = a62 + 1;
            long a64 = a63 + 1; long a65 = a64 + 1; long a66 = a65 + 1; long a67 = a66 + 1;
            long a68 = a67 + 1; long a69 = a68 + 1; long a70 = a69 + 1; long a71 = a70 + 1;
            long a72 = a71 + 1; long a73 = a72 + 1; long a74 = a73 + 1; long a75 = a74 + 1;
            long a76 = a75 + 1; long a77 = a76 + 1; long a78 = a77 + 1; long a79 = a78 + 1;
            long a80 = a79 + 1; long a81 = a80 + 1; long a82 = a81 + 1; long a83 = a82 + 1;
            long a84 = a83 + 1; long a85 = a84 + 1; long a86 = a85 + 1; long a87 = a86 + 1;
            long a88 = a87 + 1; long a89 = a88 + 1; long a90 = a89 + 1; long a91 = a90 + 1;
            long a92 = a91 + 1; long a93 = a92 + 1; long a94 = a93 + 1; long a95 = a94 + 1;
            long a96 = a95 + 1; long a97 = a96 + 1; long a98 = a97 + 1; long a99 = a98 + 1;
            long a100 = a99 + 1; long a101 = a100 + 1; long a102 = a101 + 1; long a103 = a102 + 1;
            long a104 = a103 + 1; long a105 = a104 + 1; long a106 = a105 + 1; long a107 = a106 + 1;
            long a108 = a107 + 1; long a109 = a108 + 1; long a110 = a109 + 1; long a111 = a110 + 1;
            long a112 = a111 + 1; long a113 = a112 + 1; long a114 = a113 + 1; long a115 = a114 + 1;
            long a116 = a115 + 1; long a117 = a116 + 1; long a118 = a117 + 1; long a119 = a118 + 1;
            return (int) a119;
        }
        return x;
    }

    /** Its entry locks, and its exit unlocks. */
    private static synchronized int locked(int x) {
        if (x == 0) {
            return 1;
        }
        return x;
    }
}
