//! Compares sums of samples with the kernel's accounts, on machines whose host sometimes steals CPU time.
//! Perf events continue to count stolen time, which is not in the kernel's accounts. Timers follow these
//! accounts.

use std::time::Duration;

/// CPU time by samples and by the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// The time that samples stand for.
    pub sampled: Duration,
    /// The time by the kernel's account.
    pub used: Duration,
}

impl Measured {
    /// The relative error of the samples: above 0 if they stand for too much time, below 0 for too little.
    pub fn error(&self) -> f64 {
        self.sampled.as_secs_f64() / self.used.as_secs_f64() - 1.0
    }
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The sums agree.
    Holds,
    /// The sums differ.
    Fails,
    /// The host stole so much time that nothing can be concluded.
    Unknown,
}

/// The most stolen time, as a fraction of the time used, that can excuse a difference.
const MOST_EXCUSED: f64 = 0.01;

/// Judges a sum. The only excuse is a surplus of perf events, up to the stolen time.
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

/// Measures and judges, repeatedly if stolen time makes the result inconclusive. Where the host steals time
/// in each run, the last run is judged by the time that was stolen meanwhile, however much that is.
pub fn measure(
    by_perf_events: bool,
    tolerance: f64,
    what: &str,
    mut run: impl FnMut() -> Measured,
) -> Verdict {
    let mut runs_left = 4;
    loop {
        runs_left -= 1;
        let before = stolen_since_boot();
        let measured = run();
        let stolen = stolen_since_boot() - before;
        let verdict = judge(measured, stolen, by_perf_events, tolerance);
        println!("{what}: {measured:?} ({:+.2} %), stolen {stolen:?}: {verdict:?}", measured.error() * 100.0);
        if verdict != Verdict::Unknown {
            return verdict;
        }
        if runs_left == 0 {
            let explained = measured.used.mul_f64(1.0 + tolerance) + stolen;
            return if measured.sampled <= explained { Verdict::Holds } else { Verdict::Fails };
        }
    }
}

/// The time stolen from all CPUs since boot: the eighth number in the first line of /proc/stat, in ticks of
/// 10 ms (proc_stat(5)).
pub fn stolen_since_boot() -> Duration {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let ticks = stat.split_whitespace().nth(8).and_then(|ticks| ticks.parse::<u64>().ok());
    Duration::from_millis(ticks.expect("a kernel since 2.6.11") * 10)
}
