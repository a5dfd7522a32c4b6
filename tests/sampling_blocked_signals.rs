//! Signals that are blocked for a while, or permanently.

use std::time::Duration;
use std::{ptr, thread};

use otlpprof_core::thread::ClockKind;
use otlpprof_sampling::cpu;
use otlpprof_signal::cpu_counters::CpuCounts;
use otlpprof_testkit::sampling_session::*;
use otlpprof_testkit::stolen_time::Measured;

fn each_clock(scenario: fn(ClockKind)) {
    let _guard = serially();
    thread_clocks().into_iter().for_each(scenario);
}

fn each_clock_within(percent: f64, scenario: fn(ClockKind) -> Measured) {
    let _guard = serially();
    for kind in thread_clocks() {
        assert_within(percent, kind, "a thread with its signal blocked", || scenario(kind));
    }
}

/// Blocks or unblocks a signal for the current thread.
fn mask(how: i32, signal: i32) {
    // SAFETY: `set_of` returns an initialised set, and a null old set is allowed.
    assert_eq!(unsafe { libc::pthread_sigmask(how, &set_of(signal), ptr::null_mut()) }, 0);
}

/// The time while the signal was blocked is made up for after it is unblocked: by si_overrun, or as owed
/// time.
#[test]
fn blocked_signals_are_compensated() {
    each_clock_within(2.0, |kind| {
        let session = start(&config(kind));
        let before = cpu::counts();
        let body = || {
            burn(Duration::from_millis(300));
            mask(libc::SIG_BLOCK, libc::SIGPROF);
            let blocked_at = sampled_of(gettid());
            burn(Duration::from_millis(1500));
            let unblocked_at = sampled_of(gettid());
            mask(libc::SIG_UNBLOCK, libc::SIGPROF);
            // The poller runs once a second, and the next sample makes up for the owed time.
            for _ in 0..13 {
                thread::sleep(Duration::from_millis(100));
                burn(Duration::from_millis(10));
            }
            (gettid(), blocked_at, unblocked_at, burn_until_settled(Duration::ZERO))
        };
        let (tid, blocked_at, unblocked_at, used) = thread::spawn(body).join().unwrap();
        session.stop();
        let counts = cpu::counts().since(&before);
        assert_eq!(blocked_at, unblocked_at, "nothing is sampled while the signal is blocked");
        assert!(counts.overrun_periods + counts.owed_periods >= 140, "{counts:?}");
        Measured { sampled: sampled_of(tid), used }
    });
}

/// A thread that starts with the signal blocked and unblocks it late.
#[test]
fn a_first_signal_that_was_blocked_counts_for_all() {
    each_clock_within(3.0, |kind| {
        let session = start(&config(kind));
        mask(libc::SIG_BLOCK, libc::SIGPROF);
        let thread = thread::spawn(|| {
            burn(Duration::from_millis(1000));
            mask(libc::SIG_UNBLOCK, libc::SIGPROF);
            for _ in 0..13 {
                thread::sleep(Duration::from_millis(100));
                burn(Duration::from_millis(10));
            }
            (gettid(), burn_until_settled(Duration::ZERO))
        });
        mask(libc::SIG_UNBLOCK, libc::SIGPROF);
        let (tid, used) = thread.join().unwrap();
        session.stop();
        Measured { sampled: sampled_of(tid), used }
    });
}

/// The time of a thread whose signal stays blocked to its end is not lost either: it is in the balance of
/// ended threads, or in the first sample of another thread.
#[test]
fn the_time_of_a_thread_that_never_unblocks_is_in_the_balance() {
    each_clock(|kind| {
        let before = cpu::counts();
        let session = start(&config(kind));
        mask(libc::SIG_BLOCK, libc::SIGPROF);
        let thread = thread::spawn(|| {
            burn(Duration::from_millis(200));
            thread_cpu()
        });
        mask(libc::SIG_UNBLOCK, libc::SIGPROF);
        let used = thread.join().unwrap();
        let left = left_by_ended_threads(&before);
        session.stop();
        // The thread uses some CPU time before it is armed and after it has read its clock.
        let expected = used.saturating_sub(Duration::from_millis(1))..used + Duration::from_millis(5);
        assert!(expected.contains(&left), "{}: {left:?}, expected {expected:?}", kind.name());
    });
}

/// The CPU time that ended threads were not credited with, in the balance or in a sample since `before`.
fn left_by_ended_threads(before: &CpuCounts) -> Duration {
    loop {
        let taken = cpu::counts().since(before).estate_periods;
        let balance_ns = cpu::ended_balance_ns();
        // A sample of this thread may take from the balance between the two readings.
        if cpu::counts().since(before).estate_periods == taken {
            return Duration::from_nanos(u64::try_from(balance_ns).unwrap()) + INTERVAL * taken as u32;
        }
    }
}
