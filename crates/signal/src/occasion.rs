//! The causes of signals.

/// The cause of a signal, as its `siginfo_t` describes it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Occasion {
    /// An overflow of the event that serves as the thread's CPU clock.
    Overflow,
    /// An expiry of the thread's timer, with the number of further expiries that were merged into it.
    Expiry {
        /// `si_overrun`.
        overrun: i64,
    },
    /// A request of the wall-clock sampler: not for the CPU engine.
    WallRequest,
    /// An overflow of the thread's event for the event engine: not for the CPU engine.
    EventOverflow,
    /// An expiry of the process's timer.
    Itimer {
        /// The number of periods that the expiry stands for.
        periods: i64,
    },
}
