//! Leaves a thread time between its CPU samples, however long a sample takes.
//!
//! A handler's time is its thread's CPU time. If a sample takes an interval or longer, the next signal is
//! pending when the handler returns, and the thread would stay at one instruction for ever. So after a long
//! sample the next one is put off until the thread has run for as long as the handler did. That next sample
//! stands for all periods in between.
//!
//! The monotonic clock, which is cheap, says whether a handler may have been long: the handler may also have
//! been preempted. Only the handler after such a one is measured by the thread's CPU clock, which takes two
//! system calls.

use std::sync::atomic::Ordering;

use otlpprof_core::thread::CpuAccount;

use super::clock::{monotonic_ns, thread_cpu_ns};

/// A sample that is being taken.
pub(super) struct Handling {
    begin_ns: u64,
    /// The thread's CPU clock, if the thread's last handler may have been long.
    begin_cpu_ns: Option<i64>,
}

impl Handling {
    /// Begins to take a sample.
    pub(super) fn begin(account: &CpuAccount) -> Self {
        let is_suspected = account.handler_may_be_long.load(Ordering::Relaxed);
        Self { begin_ns: monotonic_ns(), begin_cpu_ns: is_suspected.then(thread_cpu_ns) }
    }

    /// The sample has been taken: determines the least number of periods that the thread's next one stands
    /// for.
    pub(super) fn end(self, account: &CpuAccount, interval_ns: i64) {
        let took_ns = monotonic_ns().saturating_sub(self.begin_ns);
        let may_be_long = took_ns > interval_ns.wrapping_shr(1).cast_unsigned();
        account.handler_may_be_long.store(may_be_long, Ordering::Relaxed);
        let used_ns = match self.begin_cpu_ns {
            Some(begin_ns) if may_be_long => thread_cpu_ns().saturating_sub(begin_ns),
            _ => 0,
        };
        account.least_weight.store(least_weight(used_ns, interval_ns), Ordering::Relaxed);
    }
}

/// The least number of periods from a sample whose handler used `used_ns` to the next sample: the handler's
/// own periods, as many for the thread, and the one that was under way. 1 after a handler of less than half
/// an interval.
fn least_weight(used_ns: i64, interval_ns: i64) -> i64 {
    match used_ns.saturating_mul(2).checked_div(interval_ns) {
        None | Some(0) => 1,
        Some(periods) => periods.saturating_add(2),
    }
}

#[cfg(test)]
mod tests {
    use super::least_weight;

    #[test]
    fn a_thread_runs_as_long_as_a_long_handler_did() {
        let weights = [0, 49, 50, 99, 100, 250, 1_000].map(|used_ns| least_weight(used_ns, 100));
        assert_eq!(weights, [1, 1, 3, 3, 4, 7, 22]);
    }
}
