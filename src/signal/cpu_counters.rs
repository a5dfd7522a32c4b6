//! The CPU engine's counters. Everything that is not an ordinary sample is one.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Events of the CPU engine since the process began. Only ever grow.
        #[derive(Debug, Default)]
        pub struct CpuCounters {
            $($(#[$doc])* pub $name: AtomicU64,)*
        }

        /// The counters' values at one moment, or between two.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct CpuCounts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl CpuCounters {
            const fn new() -> Self {
                Self { $($name: AtomicU64::new(0),)* }
            }

            /// The values now.
            pub fn read(&self) -> CpuCounts {
                CpuCounts { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl CpuCounts {
            /// What has happened since `earlier`.
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($name: self.$name.wrapping_sub(earlier.$name),)* }
            }

            /// Every counter with its name, in the order in which they are declared.
            pub fn entries(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Signals of our own clocks.
    own_signals,
    /// Signals that were not ours; they went to the handler that was there before.
    foreign_signals,
    /// Signals of a clock that is gone: swallowed.
    stale_signals,
    /// Samples taken.
    samples,
    /// The periods that they stand for.
    periods,
    /// Periods that a signal told of besides its own (`si_overrun`).
    overrun_periods,
    /// Periods that no signal told of (blocked, coalesced), paid by a later sample of the same thread.
    owed_periods,
    /// Signals that made no sample, because the thread had been credited before for what they stood for.
    surplus_signals,
    /// Periods of threads that ended between two signals, paid by the first sample of a later thread.
    estate_periods,
    /// First signals that by their thread's random phase made no sample.
    phased_out,
    /// Signals of the process's timer that met a thread with a clock of its own: no sample.
    itimer_elsewhere,
    /// Signals of the process's timer that met a thread that is not known yet: no sample.
    itimer_unknown_thread,
    /// CPU time, in nanoseconds, that no thread's account has (the very ends of threads, and threads that came and
    /// went between two looks) and that the estate was given.
    unwitnessed_ns,
    /// Threads armed.
    threads_armed,
    /// Threads that were found by looking, not by their creation: raw clone, or a pthread_create that came
    /// round our own.
    threads_found_by_poll,
    /// Threads that went to a POSIX timer because no descriptor (or no event) could be had.
    fallback_to_timer,
    /// Threads that went to the process's timer because no POSIX timer could be had.
    fallback_to_itimer,
    /// Threads that could not be sampled at all.
    threads_unsampled,
    /// Times that somebody else's handler was found in the place of ours.
    handler_replaced,
    /// Handlers that were still running when stop gave up waiting for them.
    stop_timeouts,
}

/// The one set of them.
pub static COUNTERS: CpuCounters = CpuCounters::new();

/// Adds `amount` to a counter.
pub fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
