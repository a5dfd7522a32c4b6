//! What the handlers count. Every number only grows; a reader takes differences.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::core::record::Engine;

use super::walk::{FrozenReason, WalkError};

/// What a sample of the deepest stack takes at most, on a slow machine.
const LONGEST_SAMPLE_NS: u64 = 500_000;

/// A count of each engine's.
pub struct CountByEngine([AtomicU64; Engine::COUNT]);

impl CountByEngine {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; Engine::COUNT])
    }

    /// Adds to an engine's count.
    #[inline]
    pub fn add(&self, engine: Engine, count: u64) {
        if let Some(counter) = self.0.get(engine as usize) {
            add(counter, count);
        }
    }

    /// An engine's count.
    pub fn of(&self, engine: Engine) -> u64 {
        self.0.get(engine as usize).map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    /// The count of all engines together.
    pub fn sum(&self) -> u64 {
        self.0.iter().fold(0, |sum, counter| sum.wrapping_add(counter.load(Ordering::Relaxed)))
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The handlers' counters. All relaxed: each is a count of its own.
        pub struct Counters {
            $($(#[$doc])* pub $name: AtomicU64,)*
            /// Samples that were begun, recorded or lost.
            pub samples_taken: CountByEngine,
            /// Of those that come one by one: left to others to stand for, within the budget.
            pub samples_thinned: CountByEngine,
            /// Samples lost, for one of four reasons.
            pub samples_dropped: CountByEngine,
            /// Not recorded, since the thread has not registered itself and only such are wanted.
            pub samples_filtered: CountByEngine,
            /// What engines have used: [`Counters::engine_has_used`].
            pub engine_ns: CountByEngine,
            /// Signals that the kernel has delivered for engines.
            pub engine_signals: CountByEngine,
            /// Walks that could not go on, by [`WalkError`].
            pub walk_errors: [AtomicU64; WalkError::COUNT],
            /// Walks that left frozen frames out, by [`FrozenReason`].
            pub frozen: [AtomicU64; FrozenReason::COUNT],
        }

        impl Counters {
            const fn new() -> Self {
                Self {
                    $($name: AtomicU64::new(0),)*
                    samples_taken: CountByEngine::new(),
                    samples_thinned: CountByEngine::new(),
                    samples_dropped: CountByEngine::new(),
                    samples_filtered: CountByEngine::new(),
                    engine_ns: CountByEngine::new(),
                    engine_signals: CountByEngine::new(),
                    walk_errors: [const { AtomicU64::new(0) }; WalkError::COUNT],
                    frozen: [const { AtomicU64::new(0) }; FrozenReason::COUNT],
                }
            }

            /// Every counter but the walk errors and frozen frames, with its name; of samples those of all engines
            /// together. Ordinary zone only.
            #[expect(clippy::disallowed_types, clippy::disallowed_macros, reason = "for reports, not in a handler")]
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![
                    ("samples_taken", self.samples_taken.sum()),
                    ("samples_thinned", self.samples_thinned.sum()),
                    ("samples_dropped", self.samples_dropped.sum()),
                    ("samples_filtered", self.samples_filtered.sum()),
                    $((stringify!($name), self.$name.load(Ordering::Relaxed)),)*
                ]
            }
        }
    };
}

counters! {
    /// The weights of all lost samples, in periods.
    periods_dropped,
    /// The weights of those that were not recorded since only registered threads are wanted, in periods.
    periods_filtered,
    /// Lost: all strips of the buffer were held by others.
    samples_dropped_held,
    /// Lost: the strips that nobody held had no room.
    samples_dropped_full,
    /// Lost: buffer or object map were not there.
    samples_dropped_not_ready,
    /// Lost: the thread's stack has no room for a sample, and no stack of the handlers' own was free.
    samples_dropped_small_stack,
    /// Signals that the kernel had no room for on the thread's alternate stack.
    signals_undelivered,
    /// CPU time of the handlers, from entry to exit, by CLOCK_MONOTONIC.
    handler_ns,
    /// Time in the VM's events that take no sample: where waits begin, and virtual threads are mounted and unmounted.
    event_ns,
    /// Native frames for which the remote pool had no slot left; they keep their raw address.
    remote_pool_exhausted,
    /// Frames walked by call frame information in place because their object's unwind table was not there yet.
    frames_before_tables,
    /// Native frames without call frame information whose callers their instructions, or the stack, have told.
    undescribed_callers,
    /// Frames walked by frame pointer because nothing else describes their code.
    frame_pointer_fallbacks,
    /// Walks that left out native frames and went on at the thread's Java frame anchor.
    anchor_fallbacks,
    /// Samples without context because their thread was just writing it.
    contexts_in_transition,
    /// Stacks whose Java frames AsyncGetCallTrace gave.
    call_traces,
    /// Calls of AsyncGetCallTrace that gave none, or perhaps not all.
    call_traces_failed,
    /// Stacks for which it was not asked: it does not know such stacks, or guesses.
    call_traces_avoided,
    /// Stacks cut at the frame limit.
    truncated,
}

/// The counters of this process.
pub static COUNTERS: Counters = Counters::new();

/// Adds to a counter.
#[inline]
pub fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Counters {
    /// Counts what a sample of the engine took. A thread that loses its processor in the middle uses no more for that: what
    /// is longer than any walk counts as that long.
    #[inline]
    pub fn engine_has_used(&self, engine: Engine, ns: u64) {
        self.engine_ns.add(engine, ns.min(LONGEST_SAMPLE_NS));
    }

    /// Counts what an event of the VM's took in which no sample is taken, with the same limit.
    #[inline]
    pub fn event_has_used(&self, ns: u64) {
        add(&self.event_ns, ns.min(LONGEST_SAMPLE_NS));
    }

    /// Counts a signal that an engine has caused.
    #[inline]
    pub fn signal_has_come(&self, engine: Engine) {
        self.engine_signals.add(engine, 1);
    }

    /// Counts a sample of the engine that was not even begun: there is no stack for it.
    #[inline]
    pub fn has_no_stack(&self, engine: Engine) {
        self.signal_has_come(engine);
        self.samples_taken.add(engine, 1);
        self.samples_dropped.add(engine, 1);
        add(&self.samples_dropped_small_stack, 1);
    }

    /// Counts a walk error.
    #[inline]
    pub fn walk_error(&self, error: WalkError) {
        if let Some(counter) = self.walk_errors.get(error as usize) {
            add(counter, 1);
        }
    }

    /// Counts a walk that left frozen frames out.
    #[inline]
    pub fn frozen(&self, reason: FrozenReason) {
        if let Some(counter) = self.frozen.get(reason as usize) {
            add(counter, 1);
        }
    }
}
