//! The cost of the VM's events in which no sample is taken: the events in which a wait begins, and the events
//! in which virtual threads are mounted.

use otlpprof_signal::clock::monotonic_ns;
use otlpprof_signal::counters::COUNTERS;

/// Runs `body`, and adds its time to the events' cost, for the budget.
pub(super) fn counted<T>(body: impl FnOnce() -> T) -> T {
    let start_ns = monotonic_ns();
    let result = body();
    COUNTERS.event_has_used(monotonic_ns().saturating_sub(start_ns));
    result
}
