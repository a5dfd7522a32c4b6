//! The weights of the samples add up to the CPU time of the process, whatever its threads do.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use otlpprof_core::thread::ClockKind;
use otlpprof_sampling::config::Config;
use otlpprof_sampling::cpu;
use otlpprof_testkit::sampling_session::*;
use otlpprof_testkit::stolen_time::Measured;
use otlpprof_testkit::waiting::wait_for;

/// Runs `program` under each clock, and compares the sum of the samples with getrusage.
fn adds_up(what: &str, program: fn()) {
    let _guard = serially();
    for kind in thread_clocks() {
        adds_up_by(kind, what, program, Settling::OfThemselves);
    }
}

/// As [`adds_up`], for threads that end whatever is missing of their time.
fn adds_up_by_heirs(what: &str, program: fn()) {
    let _guard = serially();
    for kind in thread_clocks() {
        adds_up_by(kind, what, program, Settling::ByHeirs);
    }
}

/// The samples that account for the last moments of a program's threads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Settling {
    /// The threads' own samples: each thread goes on until little of its time is missing.
    OfThemselves,
    /// The samples of later threads, which stand for the missing time of ended threads.
    ByHeirs,
}

/// Two threads of 1.5 s miss less than two intervals each, and [`OPEN`] is less than 2 % of 3 s.
fn adds_up_by(kind: ClockKind, what: &str, program: fn(), settling: Settling) {
    assert_within(2.0, kind, what, || {
        let counts = cpu::counts();
        let session = start(&config(kind));
        assert_eq!(session.clock(), Some(kind));
        let before = program_cpu();
        program();
        let used = match settling {
            Settling::OfThemselves => program_cpu() - before,
            Settling::ByHeirs => settle_program(before),
        };
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
    adds_up("user only", || {
        in_threads(2, 2, || {
            burn(Duration::from_millis(1500));
            burn_until_settled(Duration::ZERO);
        });
    });
}

#[test]
fn syscall_heavy() {
    adds_up("syscall heavy", || {
        in_threads(2, 2, || {
            burn_in_kernel(Duration::from_millis(1500));
            burn_until_settled(Duration::ZERO);
        });
    });
}

/// Threads that live for half a tick and a fifth of an interval, so almost none lives for a whole period.
#[test]
fn many_short_threads() {
    adds_up_by_heirs("short threads", || in_threads(1500, 2, || burn(Duration::from_millis(2))));
}

/// Threads that use CPU time in bursts shorter than a tick, and wait in between.
#[test]
fn threads_that_mostly_wait() {
    adds_up_by_heirs("waiting threads", || {
        in_threads(300, 4, || {
            for _ in 0..20 {
                burn(Duration::from_micros(700));
                thread::sleep(Duration::from_micros(1300));
            }
        });
    });
}

/// Short threads beside a long one in one program: the samples of each stand for its own time. Only a first
/// sample stands for the time of ended threads, so the long thread has its first sample before they start.
#[test]
fn short_threads_leave_a_long_one_its_share() {
    let _guard = serially();
    for kind in thread_clocks() {
        assert_within(2.0, kind, "the long thread", || {
            let session = start(&config(kind));
            let (sampled_first, is_sampled) = mpsc::channel();
            let long = thread::spawn(move || {
                while sampled_of(gettid()).is_zero() {
                    burn(Duration::from_millis(1));
                }
                sampled_first.send(()).unwrap();
                burn(Duration::from_secs(2));
                (gettid(), burn_until_settled(Duration::ZERO))
            });
            is_sampled.recv().unwrap();
            in_threads(1000, 1, || burn(Duration::from_millis(2)));
            let (long, used) = long.join().unwrap();
            session.stop();
            Measured { sampled: sampled_of(long), used }
        });
    }
}

/// The clock for systems that grant no other.
#[test]
fn the_process_timer_adds_up_too() {
    let _guard = serially();
    // The process timer does not report the signals that it merged, so threads may end with more than one
    // unsampled period.
    let program = || in_threads(2, 2, || burn(Duration::from_millis(1500)));
    adds_up_by(ClockKind::Itimer, "user only", program, Settling::ByHeirs);
}

/// Threads that no callback reports, and that end before the poller runs: their time is counted all the same.
#[test]
fn raw_clones_that_come_and_go_unseen_are_in_the_sum() {
    extern "C" fn body(_: *mut std::ffi::c_void) -> i32 {
        burn(Duration::from_millis(5));
        0
    }
    const CLONES: i64 = 200;
    const CLONE_NS: i64 = 5_000_000;
    let _guard = serially();
    for kind in thread_clocks() {
        let session = start(&config(kind));
        let counts = cpu::counts();
        let before = program_cpu();
        for _ in 0..CLONES {
            in_raw_clone(body);
        }
        // The poller finds the time once no thread starts or ends. A clone that other programs hold up may be
        // found itself.
        let found_ns = || {
            let counts = cpu::counts().since(&counts);
            counts.unwitnessed_ns.cast_signed() + counts.threads_found_by_poll.cast_signed() * CLONE_NS
        };
        wait_for("the clones' time", || found_ns() >= CLONES * CLONE_NS * 95 / 100);
        let used = settle_program(before);
        session.stop();
        println!("{}: {:?}", kind.name(), cpu::counts().since(&counts));
        assert!(sampled() + OPEN > used, "{}: {:?} of {used:?}", kind.name(), sampled());
    }
}

/// An interval far below the tick, so that each signal of a timer merges many periods. It is not much longer
/// than the handling of a signal takes.
#[test]
fn short_intervals_add_up() {
    const SHORT: Duration = Duration::from_micros(200);
    /// More time than may be missing right after a tick.
    const REST: Duration = Duration::from_millis(10);
    let _guard = serially();
    for kind in thread_clocks() {
        assert_within(2.0, kind, "a short interval", || {
            let session = start(&Config { interval: SHORT, ..config(kind) });
            let counts = cpu::counts();
            let before = program_cpu();
            in_threads(2, 2, || {
                burn(Duration::from_millis(1000));
                burn_until_within(REST, Duration::ZERO, || SHORT * periods_of(gettid()));
            });
            let used = program_cpu() - before;
            session.stop();
            let counts = cpu::counts().since(&counts);
            println!("{counts:?}");
            Measured { sampled: SHORT * counts.periods as u32, used }
        });
    }
}
