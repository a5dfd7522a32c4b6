//! Wall-clock profiles of `programs.IdleCrowd`, a program of threads that wait and threads that run: the time
//! that the samples of an interval stand for, beside the interval's length.

use std::collections::BTreeMap;

use otlpprof_otlp::read::Message;

use crate::stacks::stacks_of;

/// The time for which the first intervals after the last thread has begun to wait are left out. Until each
/// thread has been sampled once, their time is credited to all threads together, which includes some twenty
/// of the JVM's own.
const SETTLED_NS: u64 = 1_000_000_000;

/// An interval of a session that sampled the program.
#[derive(Clone, Debug)]
pub struct IntervalSums {
    /// Its length.
    pub length_ns: u64,
    /// The time of the waiting threads together.
    pub idle_ns: f64,
    /// The time of each running thread, by `thread.id`.
    pub running_ns: BTreeMap<i64, f64>,
}

impl IntervalSums {
    /// The time of the waiting threads as a part of their true time: 1 is right.
    pub fn idle_ratio(&self, threads: u32) -> f64 {
        self.idle_ns / (self.length_ns as f64 * f64::from(threads))
    }
}

/// The sums of all intervals that are within the time for which the program waits. `output` is the standard
/// output of the program.
///
/// # Panics
/// If `output` is not that of the program.
pub fn interval_sums(messages: &[Message], output: &str) -> Vec<IntervalSums> {
    let times: Vec<u64> = output.lines().map(|line| line.parse().expect("a time")).collect();
    let sums = messages.iter().filter_map(|message| {
        let profile = &message.data.resource_profiles[0].scope_profiles[0].profiles[0];
        let (start_ns, length_ns) = (profile.time_unix_nano, profile.duration_nano);
        let is_within = times[0] + SETTLED_NS <= start_ns && start_ns + length_ns <= times[1];
        is_within.then(|| sums_of(message, length_ns))
    });
    sums.collect()
}

fn sums_of(message: &Message, length_ns: u64) -> IntervalSums {
    let mut sums = IntervalSums { length_ns, idle_ns: 0.0, running_ns: BTreeMap::new() };
    for stack in stacks_of(std::slice::from_ref(message), "wall", ("samples", "count")) {
        let ns = (stack.value * stack.period_ns) as f64;
        match (stack.thread.as_str(), stack.thread_id) {
            ("idle", _) => sums.idle_ns += ns,
            ("running", Some(thread)) => *sums.running_ns.entry(thread).or_default() += ns,
            _ => {}
        }
    }
    sums
}
