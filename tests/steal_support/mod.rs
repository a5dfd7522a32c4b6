//! Sums of samples against what the kernel counted, on machines whose host takes their CPUs away now and then. Perf
//! events go on counting meanwhile, which the kernel's accounts do not have; timers are set by those accounts.

#![allow(dead_code, unreachable_pub, reason = "test binaries and other support modules include this")]

use std::time::Duration;

/// CPU time as samples have it, and as the kernel has it.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub sampled: Duration,
    pub used: Duration,
}

impl Measured {
    /// By how much samples stand for too much, in parts of what was used; below 0, for too little.
    pub fn error(&self) -> f64 {
        self.sampled.as_secs_f64() / self.used.as_secs_f64() - 1.0
    }
}

/// What a comparison came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Holds,
    Fails,
    /// The host took so much that nothing can be said.
    Unknown,
}

/// The most stolen time, in parts of what was used, that excuses anything.
const MOST_EXCUSED: f64 = 0.01;

/// Judges a sum. Only what perf events count too much is excused, by what was stolen.
pub fn judge(measured: Measured, stolen: Duration, by_perf_events: bool, tolerance: f64) -> Verdict {
    let error = measured.error();
    let stolen = stolen.as_secs_f64() / measured.used.as_secs_f64();
    if error.abs() <= tolerance {
        Verdict::Holds
    } else if !by_perf_events || error < 0.0 {
        Verdict::Fails
    } else if stolen > MOST_EXCUSED {
        Verdict::Unknown
    } else if error <= tolerance + stolen {
        Verdict::Holds
    } else {
        Verdict::Fails
    }
}

/// Measures, some times where the host spoils it, and judges.
pub fn measure(
    by_perf_events: bool,
    tolerance: f64,
    what: &str,
    mut run: impl FnMut() -> Measured,
) -> Verdict {
    for _ in 0..4 {
        let before = stolen_since_boot();
        let measured = run();
        let stolen = stolen_since_boot() - before;
        let verdict = judge(measured, stolen, by_perf_events, tolerance);
        println!("{what}: {measured:?} ({:+.2} %), stolen {stolen:?}: {verdict:?}", measured.error() * 100.0);
        if verdict != Verdict::Unknown {
            return verdict;
        }
    }
    Verdict::Unknown
}

/// The time taken from all CPUs since the machine started: the eighth number of /proc/stat's first line, in ticks of
/// 10 ms (proc_stat(5)).
fn stolen_since_boot() -> Duration {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let ticks = stat.split_whitespace().nth(8).and_then(|ticks| ticks.parse::<u64>().ok());
    Duration::from_millis(ticks.expect("a kernel since 2.6.11") * 10)
}
