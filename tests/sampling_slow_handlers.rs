//! Samples that take longer than the sampling interval.

use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use otlpprof_core::thread::ClockKind;
use otlpprof_sampling::config::Config;
use otlpprof_signal::call_trace::CallTrace;
use otlpprof_signal::clock::{monotonic_ns, thread_cpu_ns};
use otlpprof_testkit::sampling_session::*;
use otlpprof_testkit::stolen_time::stolen_since_boot;

const INTERVAL_NS: i64 = 2_000_000;
/// The CPU time that a sample takes.
const HANDLER_NS: i64 = 3 * INTERVAL_NS;
/// The samples that are judged.
const SAMPLES: usize = 20;
/// The first samples: a thread's first long handler is noticed, and its second one is measured.
const UNMEASURED: usize = 3;

static TAKEN: AtomicUsize = AtomicUsize::new(0);
/// CLOCK_MONOTONIC, in ns, in each of the samples.
static BEGUN_NS: [AtomicU64; SAMPLES] = [const { AtomicU64::new(0) }; SAMPLES];
/// The thread's CPU clock when its last handler ended.
static ENDED_NS: AtomicI64 = AtomicI64::new(0);
/// The shortest CPU time between two samples.
static SHORTEST_NS: AtomicI64 = AtomicI64::new(i64::MAX);
/// The CPU time between all samples.
static BETWEEN_NS: AtomicI64 = AtomicI64::new(0);

/// Called in each sample of the thread that is judged.
unsafe extern "C" fn take_long(_: *mut CallTrace, _: i32, _: *mut c_void) {
    let Some(begun) = BEGUN_NS.get(TAKEN.load(Ordering::Relaxed)) else { return };
    begun.store(monotonic_ns(), Ordering::Relaxed);
    let begun_ns = thread_cpu_ns();
    if TAKEN.fetch_add(1, Ordering::Relaxed) >= UNMEASURED {
        let between_ns = begun_ns - ENDED_NS.load(Ordering::Relaxed);
        SHORTEST_NS.fetch_min(between_ns, Ordering::Relaxed);
        BETWEEN_NS.fetch_add(between_ns, Ordering::Relaxed);
    }
    while thread_cpu_ns() < begun_ns + HANDLER_NS {}
    ENDED_NS.store(thread_cpu_ns(), Ordering::Relaxed);
}

/// The periods that the judged samples stood for, in the order of the samples.
fn periods_of_samples() -> Vec<i64> {
    let mut records = Vec::new();
    drain(|header| {
        if header.os_tid == gettid() {
            records.push((header.monotonic_ns, header.weight.cast_signed()));
        }
    });
    let periods_at = |begun_ns: &AtomicU64| {
        // The time of a record is the time at which the handler began.
        let before = records.iter().filter(|(ns, _)| *ns <= begun_ns.load(Ordering::Relaxed));
        before.max().unwrap().1
    };
    BEGUN_NS.iter().map(periods_at).collect()
}

/// Regression: where a sample took longer than the interval, its thread stayed at one instruction.
#[test]
fn a_thread_runs_as_long_as_its_samples_take() {
    let _guard = serially();
    for kind in thread_clocks() {
        TAKEN.store(0, Ordering::Relaxed);
        SHORTEST_NS.store(i64::MAX, Ordering::Relaxed);
        BETWEEN_NS.store(0, Ordering::Relaxed);
        let interval = Duration::from_nanos(INTERVAL_NS as u64);
        let (began_ns, stolen_before) = (thread_cpu_ns(), stolen_since_boot());
        let session = start(&Config { interval, ..config(kind) });
        call_in_samples(take_long);
        while TAKEN.load(Ordering::Relaxed) < SAMPLES {
            burn(Duration::from_millis(1));
        }
        session.stop();
        let used_ns = thread_cpu_ns() - began_ns;
        let periods = periods_of_samples();
        let stolen_ns = (stolen_since_boot() - stolen_before).as_nanos() as i64;
        // The handler's own periods, and as many for the thread.
        let least_ns = periods[UNMEASURED..].iter().min().unwrap() * INTERVAL_NS;
        assert!(least_ns >= 2 * HANDLER_NS, "{}: a sample stood for {least_ns} ns", kind.name());
        let stood_for_ns = periods.iter().sum::<i64>() * INTERVAL_NS;
        let label = format!("{}: {stood_for_ns} ns of {used_ns} ns, {stolen_ns} ns stolen", kind.name());
        assert!(stood_for_ns > used_ns / 2, "{label}");
        // Perf events count the time that the host of a virtual machine steals, the thread's CPU clock does
        // not.
        let stolen_ns = if kind == ClockKind::Perf { stolen_ns } else { 0 };
        let between_ns = BETWEEN_NS.load(Ordering::Relaxed);
        let handlers_ns = (SAMPLES - UNMEASURED) as i64 * HANDLER_NS;
        assert!(between_ns + stolen_ns >= handlers_ns, "{label}: {between_ns} ns between the samples");
        // A clock that is bound to the scheduler's tick credits the first tick whole, 10 ms at most, and the
        // first period is a random part of one. The kernel reports stolen time in units of 10 ms.
        let most_ns = used_ns + 10_000_000 + INTERVAL_NS + stolen_ns;
        assert!(stood_for_ns <= most_ns, "{label}");
        // Overflows of perf events that a handler has merged are added to a later sample, which may then come
        // early.
        if kind != ClockKind::Perf {
            let shortest_ns = SHORTEST_NS.load(Ordering::Relaxed);
            assert!(shortest_ns >= HANDLER_NS, "{label}: {shortest_ns} ns between two samples");
        }
    }
}
