//! The handlers' counters. Every counter only grows; readers compute differences.

use std::sync::atomic::{AtomicU64, Ordering};

use otlpprof_core::engine::Engine;

use super::walk::frozen_reason::FrozenReason;
use super::walk::walk_error::WalkError;

/// The longest time, in ns, of a sample of the deepest stack on a slow machine.
const LONGEST_SAMPLE_NS: u64 = 500_000;

/// One count for each engine.
pub struct CountByEngine([AtomicU64; Engine::COUNT]);

impl CountByEngine {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; Engine::COUNT])
    }

    /// Adds `count` to an engine's count.
    #[inline]
    pub fn add(&self, engine: Engine, count: u64) {
        if let Some(counter) = self.0.get(engine as usize) {
            add(counter, count);
        }
    }

    /// Returns an engine's count.
    pub fn of(&self, engine: Engine) -> u64 {
        self.0.get(engine as usize).map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    /// Returns the sum of all engines' counts.
    pub fn sum(&self) -> u64 {
        self.0.iter().fold(0, |sum, counter| sum.wrapping_add(counter.load(Ordering::Relaxed)))
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The handlers' counters. All accesses are relaxed: the counters are independent of each other.
        pub struct Counters {
            $($(#[$doc])* pub $name: AtomicU64,)*
            /// Samples that were begun, whether they were then recorded or lost.
            pub samples_taken: CountByEngine,
            /// Events that were not sampled because others stand for them, to keep within the budget or a
            /// rate limit.
            pub samples_thinned: CountByEngine,
            /// Samples lost, for one of four reasons.
            pub samples_dropped: CountByEngine,
            /// Samples not recorded because the thread has not registered itself and only registered threads
            /// are wanted.
            pub samples_filtered: CountByEngine,
            /// Time that engines have used, in ns: [`Counters::engine_has_used`].
            pub engine_ns: CountByEngine,
            /// Signals that the kernel has delivered for engines.
            pub engine_signals: CountByEngine,
            /// Walks that could not continue, by [`WalkError`].
            pub walk_errors: [AtomicU64; WalkError::COUNT],
            /// Walks that left out frozen frames, by [`FrozenReason`].
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

            /// Returns every counter except walk errors and frozen frames, with its name. Counts by engine
            /// are summed over all engines. Ordinary zone only.
            #[expect(
                clippy::disallowed_types,
                clippy::disallowed_macros,
                reason = "for reports, not in a handler"
            )]
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
    /// The weights of samples that were not recorded because only registered threads are wanted, in periods.
    periods_filtered,
    /// Samples lost because others held all strips of the buffer.
    samples_dropped_held,
    /// Samples lost because the strips that were free had no room.
    samples_dropped_full,
    /// Samples lost because buffer or object map did not exist.
    samples_dropped_not_ready,
    /// Samples lost because the thread's stack had no room for a sample, or an unknown end, and no stack of
    /// the handlers' own was free.
    samples_dropped_small_stack,
    /// Signals for which the kernel had no room on the thread's alternate stack.
    signals_undelivered,
    /// Time of the handlers, in ns, from the start to the end of each sample, by CLOCK_MONOTONIC.
    handler_ns,
    /// Time, in ns, in VM events that take no sample: the beginnings of waits, mounting and unmounting of
    /// virtual threads.
    event_ns,
    /// Native frames for which the remote pool had no slot left; such frames keep their raw address.
    remote_pool_exhausted,
    /// Frames walked by call frame information read in place, because their object's unwind table did not
    /// exist yet.
    frames_before_tables,
    /// Native frames without call frame information whose callers were found by their instructions or by the
    /// stack's content.
    undescribed_callers,
    /// Frames walked by frame pointer because nothing else describes their code.
    frame_pointer_fallbacks,
    /// Walks that left out native frames and continued at the thread's Java frame anchor.
    anchor_fallbacks,
    /// Samples without context because their thread was changing its context at that moment.
    contexts_in_transition,
    /// Stacks whose Java frames were returned by AsyncGetCallTrace.
    call_traces,
    /// Calls of AsyncGetCallTrace that returned no frames, or perhaps not all.
    call_traces_failed,
    /// Stacks for which AsyncGetCallTrace was not called, because it does not support such stacks, or
    /// guesses.
    call_traces_avoided,
    /// Stacks cut at the limit on frames.
    truncated,
}

/// The counters of this process.
pub static COUNTERS: Counters = Counters::new();

/// Adds `count` to a counter.
#[inline]
pub fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Counters {
    /// Counts the time of a sample of the engine. A thread that is preempted in the middle uses no more CPU
    /// time for that: a time longer than any walk is counted as the longest walk.
    #[inline]
    pub fn engine_has_used(&self, engine: Engine, ns: u64) {
        self.engine_ns.add(engine, ns.min(LONGEST_SAMPLE_NS));
    }

    /// Counts the time of a VM event in which no sample is taken, with the limit of `engine_has_used`.
    #[inline]
    pub fn event_has_used(&self, ns: u64) {
        add(&self.event_ns, ns.min(LONGEST_SAMPLE_NS));
    }

    /// Counts a signal that an engine has caused.
    #[inline]
    pub fn signal_has_come(&self, engine: Engine) {
        self.engine_signals.add(engine, 1);
    }

    /// Counts a sample of the engine that was not begun, because there is no stack for it.
    #[inline]
    pub fn count_missing_stack(&self, engine: Engine) {
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

    /// Counts a walk that left out frozen frames.
    #[inline]
    pub fn frozen(&self, reason: FrozenReason) {
        if let Some(counter) = self.frozen.get(reason as usize) {
            add(counter, 1);
        }
    }
}
