//! What the VM's events cost in which no sample is taken: those where a wait begins, and where virtual threads are mounted.

use crate::signal::counters::COUNTERS;
use crate::signal::sample::monotonic_ns;

/// Does what an event asks for, and has the budget know how long that took.
pub(super) fn counted<T>(body: impl FnOnce() -> T) -> T {
    let start_ns = monotonic_ns();
    let result = body();
    COUNTERS.event_has_used(monotonic_ns().saturating_sub(start_ns));
    result
}
