//! The CPU engine's counters. Every event other than an ordinary sample has a counter.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts of the CPU engine's events since the process began. Every counter only grows.
        #[derive(Debug, Default)]
        pub struct CpuCounters {
            $($(#[$doc])* pub $name: AtomicU64,)*
        }

        /// The counters' values at one moment, or their growth between two moments.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct CpuCounts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl CpuCounters {
            const fn new() -> Self {
                Self { $($name: AtomicU64::new(0),)* }
            }

            /// Reads the current values.
            pub fn read(&self) -> CpuCounts {
                CpuCounts { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl CpuCounts {
            /// Returns the growth since `earlier`.
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($name: self.$name.wrapping_sub(earlier.$name),)* }
            }

            /// Returns every counter with its name, in the order of declaration.
            pub fn entries(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Signals of our own clocks.
    own_signals,
    /// Foreign signals, which were forwarded to the previous handler.
    foreign_signals,
    /// Signals of a clock that no longer exists, which were swallowed.
    stale_signals,
    /// Samples taken.
    samples,
    /// The periods that the samples stand for.
    periods,
    /// Periods that a signal reported besides its own (`si_overrun`).
    overrun_periods,
    /// Periods that no signal reported (blocked, coalesced), added to a later sample of the same thread.
    owed_periods,
    /// Signals that resulted in no sample, because the thread had already been credited with their periods.
    surplus_signals,
    /// Periods of threads that ended between two signals, added to the first sample of a later thread.
    estate_periods,
    /// First signals that resulted in no sample because of their thread's random phase.
    phased_out,
    /// Signals of the process's timer that were delivered to a thread with a clock of its own: no sample.
    itimer_elsewhere,
    /// Signals of the process's timer that were delivered to a thread that is not known yet: no sample.
    itimer_unknown_thread,
    /// CPU time, in nanoseconds, that no thread's account contains (the last moments of threads, and threads
    /// that came and went between two scans) and that was given to the balance of ended threads.
    unwitnessed_ns,
    /// Threads armed.
    threads_armed,
    /// Threads that were found by a scan, not at their creation: made by a raw clone, or by a pthread_create
    /// that bypassed our replacement.
    threads_found_by_poll,
    /// Threads that use a POSIX timer because no descriptor (or no event) was available.
    fallback_to_timer,
    /// Threads that use the process's timer because no POSIX timer was available.
    fallback_to_itimer,
    /// Threads that could not be sampled at all.
    threads_unsampled,
    /// Times that a foreign handler was found in place of ours.
    handler_replaced,
    /// Handlers that were still running when stop gave up waiting for them.
    stop_timeouts,
}

/// The counters of this process.
pub static COUNTERS: CpuCounters = CpuCounters::new();

/// Adds `amount` to a counter.
pub fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
