//! The weights of the samples add up to the CPU time of the process, whatever its threads do.

mod loud_support;
mod sampling_support;
mod steal_support;

use std::thread;
use std::time::Duration;

use otlpprof::core::thread::ClockKind;
use otlpprof::sampling::config::Config;
use otlpprof::sampling::cpu;
use sampling_support::*;

/// Runs `program` under each clock, and compares the sum of the samples with getrusage.
fn adds_up(what: &str, program: fn()) {
    let _guard = serially();
    for kind in thread_clocks() {
        adds_up_by(kind, what, program);
    }
}

fn adds_up_by(kind: ClockKind, what: &str, program: fn()) {
    assert_within(2.0, kind, what, || {
        let counts = cpu::counts();
        let session = start(&config(kind));
        assert_eq!(session.clock(), Some(kind));
        let before = process_cpu();
        program();
        if kind == ClockKind::Itimer {
            // The process timer does not report the signals that it merged, so threads may end with more than
            // one unsampled period.
            run_heirs();
        }
        let used = process_cpu() - before;
        session.stop();
        let counts = cpu::counts().since(&counts);
        println!("{} {what}: {counts:?}, balance {} us", kind.name(), cpu::ended_balance_ns() / 1000);
        assert_eq!(sampled(), INTERVAL * counts.periods as u32);
        assert_eq!(counts.threads_unsampled, 0);
        Measured { sampled: sampled(), used }
    });
}

#[test]
fn user_only() {
    adds_up("user only", || in_threads(2, 2, || burn(Duration::from_millis(1500))));
}

#[test]
fn syscall_heavy() {
    adds_up("syscall heavy", || in_threads(2, 2, || burn_in_kernel(Duration::from_millis(1500))));
}

/// Threads that live for half a tick and a fifth of an interval, so almost none lives for a whole period.
#[test]
fn many_short_threads() {
    adds_up("short threads", || in_threads(1500, 2, || burn(Duration::from_millis(2))));
}

/// Threads that use CPU time in bursts shorter than a tick, and wait in between.
#[test]
fn threads_that_mostly_wait() {
    adds_up("waiting threads", || {
        in_threads(300, 4, || {
            for _ in 0..20 {
                burn(Duration::from_micros(700));
                thread::sleep(Duration::from_micros(1300));
            }
        });
    });
}

/// Short threads beside a long one in one program: the samples of each stand for its own time.
#[test]
fn short_threads_leave_a_long_one_its_share() {
    let _guard = serially();
    for kind in thread_clocks() {
        assert_within(2.0, kind, "the long thread", || {
            let session = start(&config(kind));
            let long = thread::spawn(|| {
                burn(Duration::from_secs(2));
                gettid()
            });
            in_threads(1000, 1, || burn(Duration::from_millis(2)));
            let long = long.join().unwrap();
            session.stop();
            Measured { sampled: sampled_of(long), used: Duration::from_secs(2) }
        });
    }
}

/// The clock for systems that grant no other.
#[test]
fn the_process_timer_adds_up_too() {
    let _guard = serially();
    adds_up_by(ClockKind::Itimer, "user only", || in_threads(2, 2, || burn(Duration::from_millis(1500))));
}

/// Threads that no callback reports, and that end before the poller runs: their time is counted all the same.
#[test]
fn raw_clones_that_come_and_go_unseen_are_in_the_sum() {
    extern "C" fn body(_: *mut std::ffi::c_void) -> i32 {
        burn(Duration::from_millis(5));
        0
    }
    let _guard = serially();
    for kind in thread_clocks() {
        let session = start(&config(kind));
        let counts = cpu::counts();
        for _ in 0..200 {
            in_raw_clone(body);
        }
        thread::sleep(Duration::from_millis(1200));
        // The heirs' own CPU time is small compared with the time that they inherit.
        in_threads(50, 1, || burn(Duration::from_millis(2)));
        session.stop();
        let counts = cpu::counts().since(&counts);
        println!("{}: {counts:?}", kind.name());
        assert!(counts.unwitnessed_ns >= 950_000_000, "{counts:?}");
        assert!(sampled() >= Duration::from_millis(1050), "{:?}", sampled());
    }
}

/// An interval far below the tick, so that each signal of a timer merges many periods. It is not much longer
/// than the handling of a signal takes.
#[test]
fn short_intervals_add_up() {
    const SHORT: Duration = Duration::from_micros(200);
    let _guard = serially();
    for kind in thread_clocks() {
        assert_within(2.0, kind, "a short interval", || {
            let session = start(&Config { interval: SHORT, ..config(kind) });
            let counts = cpu::counts();
            let before = process_cpu();
            in_threads(2, 2, || burn(Duration::from_millis(1000)));
            let used = process_cpu() - before;
            session.stop();
            let counts = cpu::counts().since(&counts);
            println!("{counts:?}");
            Measured { sampled: SHORT * counts.periods as u32, used }
        });
    }
}
