package io.otlpprof.opentelemetry;

import io.opentelemetry.api.trace.Span;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.concurrent.ConcurrentHashMap;

/** The local root of each span, for as long as somebody has the span: one that has ended can still be the current one. */
final class LocalRoots {
    private static final ConcurrentHashMap<Key, LocalRoot> ROOTS = new ConcurrentHashMap<>();
    private static final ReferenceQueue<Span> GONE = new ReferenceQueue<>();

    /** Whether anybody looks for them; where nobody does, endpoints are the program's own affair. */
    static volatile boolean areFound;

    private LocalRoots() {}

    static void put(Span span, LocalRoot root) {
        for (Reference<?> gone = GONE.poll(); gone != null; gone = GONE.poll()) {
            ROOTS.remove(gone);
        }
        ROOTS.put(new Kept(span), root);
    }

    /** Null if it is not known. */
    static LocalRoot of(Span span) {
        return ROOTS.get(new Asked(span));
    }

    /** A span by its identity, whatever its class takes for equal. */
    private interface Key {}

    private static final class Kept extends WeakReference<Span> implements Key {
        private final int hash;

        Kept(Span span) {
            super(span, GONE);
            hash = System.identityHashCode(span);
        }

        @Override
        public int hashCode() {
            return hash;
        }

        @Override
        public boolean equals(Object other) {
            return this == other;
        }
    }

    /** Is equal to the key that is kept. */
    private static final class Asked implements Key {
        private final Span span;

        Asked(Span span) {
            this.span = span;
        }

        @Override
        public int hashCode() {
            return System.identityHashCode(span);
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Kept && ((Kept) other).get() == span;
        }
    }
}
