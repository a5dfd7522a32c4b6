//! The time that threads have waited for a processor, and the choice of the samples that report that wait.
//!
//! A thread that receives a signal runs, whatever it did before. So that samples report as much time waiting
//! for a processor as was spent, the kernel is asked how long the thread has waited and how long it has run.
//! Each sample then reports the state that has been under-reported so far. The kernel reports a wait when it
//! is over, and a sample's share is known when the sample is taken. An error in one sample is corrected by
//! the next.

use std::io::Read;

use super::task_file;

/// Returns the time, in ns, for which a thread of the process has been ready to run without a processor,
/// since the thread began; a wait that is not over is not included. `None` if the thread has ended, or if the
/// kernel does not provide the number (Documentation/scheduler/sched-stats.rst, `/proc/<pid>/schedstat`).
fn run_delay_of(tid: i32) -> Option<i64> {
    let mut text = [0; 64];
    let length = task_file::open(tid, "schedstat").ok()?.read(&mut text).ok()?;
    run_delay(text.get(..length)?)
}

/// Parses the second of three numbers: time on a processor, time waiting for one, and the number of times
/// that the thread had one.
fn run_delay(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The time that has been reported of one thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RunAccount {
    /// The thread's CPU clock and its wait for processors, both in ns, when it was last asked for a sample.
    cpu_ns: i64,
    run_delay_ns: i64,
    /// Twice the running time that has not been reported yet, in ns. Negative: twice the waiting time that
    /// has not been reported.
    balance_ns: i64,
    /// The change of the balance by the last sample, in ns.
    reported_ns: i64,
}

impl RunAccount {
    /// Returns the time, in ns, that the thread has waited for a processor so far. `since_asked_ns` is the
    /// time since the last request for a sample. The kernel takes some microseconds to answer, so it is not
    /// asked if the thread has been running for more than 19 twentieths of that time.
    pub(super) fn run_delay_of(&self, tid: i32, cpu_ns: i64, since_asked_ns: u64) -> Option<i64> {
        let has_not_run_ns = since_asked_ns.cast_signed() - (cpu_ns - self.cpu_ns);
        let has_run_on = has_not_run_ns < since_asked_ns.cast_signed() / 20;
        if has_run_on { Some(self.run_delay_ns) } else { run_delay_of(tid) }
    }

    /// Notes that the thread is asked for a sample that stands for `elapsed_ns`. Returns whether that sample,
    /// unless it finds the thread waiting for something else, is to be reported as a wait for a processor.
    /// `was_waiting` says that the previous sample was one of another wait, and so neither of running nor of
    /// waiting for a processor. `random` is any number.
    pub(super) fn request(
        &mut self,
        cpu_ns: i64,
        run_delay_ns: i64,
        elapsed_ns: u64,
        was_waiting: bool,
        random: u64,
    ) -> bool {
        let is_first = self.cpu_ns == 0;
        if was_waiting {
            self.balance_ns -= self.reported_ns;
        }
        self.balance_ns += (cpu_ns - self.cpu_ns) - (run_delay_ns - self.run_delay_ns);
        (self.cpu_ns, self.run_delay_ns, self.reported_ns) = (cpu_ns, run_delay_ns, 0);
        let elapsed = elapsed_ns.cast_signed();
        if is_first {
            // The thread's life before the time of this first sample is not to be reported.
            self.balance_ns = self.balance_ns.clamp(-elapsed, elapsed);
        }
        let has_run = 0.5 + self.balance_ns as f64 / (2.0 * elapsed.max(1) as f64);
        let is_runnable = (random >> 11) as f64 >= has_run * (1_u64 << 53) as f64;
        self.report(elapsed_ns, is_runnable);
        is_runnable
    }

    /// Notes that the requested sample has not been taken yet, and stands for `elapsed_ns` more. Returns
    /// whether it is now to be reported as a wait for a processor: if the thread has not run at all since the
    /// request, it has waited all the time.
    pub(super) fn extend(&mut self, cpu_ns: i64, elapsed_ns: u64, is_runnable: bool) -> bool {
        let has_waited = cpu_ns == self.cpu_ns;
        if has_waited && !is_runnable {
            self.balance_ns -= 2 * self.reported_ns;
            self.reported_ns = -self.reported_ns;
        }
        self.report(elapsed_ns, is_runnable || has_waited);
        is_runnable || has_waited
    }

    fn report(&mut self, elapsed_ns: u64, is_runnable: bool) {
        let reported = if is_runnable { elapsed_ns.cast_signed() } else { -elapsed_ns.cast_signed() };
        self.reported_ns += reported;
        self.balance_ns += reported;
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_core::byte_sampling::Random;
    use otlpprof_core::thread::current_os_tid;

    use super::*;

    #[test]
    fn the_run_delay_is_the_second_number() {
        assert_eq!(run_delay(b"3452 12 7\n"), Some(12));
        assert_eq!([&b""[..], b"1", b"1 x 2"].map(run_delay), [None; 3]);
    }

    #[test]
    fn the_kernel_reports_the_run_delay_of_an_existing_thread() {
        assert!(run_delay_of(current_os_tid()).is_none_or(|delay| delay >= 0));
        assert_eq!(run_delay_of(i32::MAX), None);
    }

    /// Simulates a thread that alternately runs and waits for a processor, and is visited every `visit_ns`.
    /// Each sample is taken when the thread runs, and stands for all visits until then. Returns the share of
    /// the time that was reported as waiting.
    fn share_reported_as_waited(runs_ns: u64, waits_ns: u64, visit_ns: u64) -> f64 {
        let (random, cycle) = (Random::new(7), runs_ns + waits_ns);
        // The time that the thread has run so far, and the time that it had waited at the end of its last
        // wait.
        let at = |now: u64| {
            let (cycles, into) = (now / cycle, now % cycle);
            let cpu = cycles * runs_ns + into.min(runs_ns);
            (cpu.cast_signed(), (cycles * waits_ns).cast_signed())
        };
        let (mut account, mut reported) = (RunAccount::default(), [0; 2]);
        // The CPU clock at the last request, the time that the sample stands for, and whether it is reported
        // as a wait.
        let (mut asked_at, mut due_ns, mut is_runnable) = (0, 0, false);
        for look in 1..=200_000 {
            let (cpu, delay) = at(look * visit_ns);
            if cpu == asked_at {
                is_runnable = account.extend(cpu, visit_ns, is_runnable);
                due_ns += visit_ns;
                continue;
            }
            // The thread has run since the request, and so has taken the sample.
            reported[usize::from(is_runnable)] += due_ns;
            is_runnable = account.request(cpu, delay, visit_ns, false, random.number());
            (asked_at, due_ns) = (cpu, visit_ns);
        }
        reported[1] as f64 / (reported[0] + reported[1]) as f64
    }

    #[test]
    fn the_reported_wait_equals_the_actual_wait() {
        for (runs, waits, look) in [
            (3_000, 5_000, 701),
            (3_000, 40_000, 4_999),
            (4_000, 4_000, 49_999),
            (9_000, 1, 1_009),
            (1, 9_000, 2_003),
        ] {
            let (reported, share) =
                (share_reported_as_waited(runs, waits, look), waits as f64 / (runs + waits) as f64);
            assert!((reported - share).abs() < 0.02, "{runs} {waits} {look}: {reported} of {share}");
        }
    }

    #[test]
    fn threads_that_are_sampled_once_report_the_right_share_of_waiting() {
        let random = Random::new(3);
        let asks = 100_000;
        let waited = (0..asks)
            .filter(|_| RunAccount::default().request(600, 400, 1_000, false, random.number()))
            .count();
        assert!((waited as f64 / f64::from(asks) - 0.4).abs() < 0.01, "{waited}");
    }

    #[test]
    fn the_kernel_is_not_asked_of_a_thread_that_runs_on() {
        let nobody = i32::MAX;
        let mut account = RunAccount::default();
        account.request(1_000, 70, 1_000, false, 0);
        assert_eq!(account.run_delay_of(nobody, 1_990, 1_000), Some(70));
        assert_eq!(account.run_delay_of(nobody, 1_900, 1_000), None);
    }

    #[test]
    fn samples_of_other_waits_change_neither_running_nor_waiting_time() {
        let mut account = RunAccount::default();
        account.request(1_000, 0, 1_000, false, 0);
        account.request(1_000, 0, 500_000, true, 0);
        assert!(account.balance_ns.abs() <= 501_000, "{account:?}");
        assert!(!account.request(2_000, 0, 1_000, true, 0));
    }
}
