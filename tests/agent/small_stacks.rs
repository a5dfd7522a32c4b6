//! Threads whose stack has little room for a signal handler: alternate signal stacks, small threads, and
//! stacks that belong to no thread. Nothing is written below these stacks, and no sample is lost.

use std::path::Path;

use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::{java_homes, java_version, newest_of, newest_or_all};
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::stacks::{cpu_stacks, stacks_of};

/// The sizes of alternate stacks, in bytes. 2,048 bytes are less than the kernel's own frame on a processor
/// with AVX-512: no signal can be delivered there.
const ALTERNATE: [&str; 6] = ["2048", "4096", "8192", "16384", "32768", "65536"];

/// The engines of signals, by the types of their profiles. A thread has page faults when it first uses the
/// pages of its ordinary stack.
const ENGINES: [&str; 3] = ["cpu", "wall", "page-faults"];

/// The seconds for which the program runs. The longer runs are for the case that other programs have used the
/// CPU.
const SECONDS: [f64; 3] = [0.6, 6.0, 30.0];

/// Runs the program's scenario until it has been sampled.
fn assert_not_overrun(home: &Path, kind: &str, sizes: &[&str], options: &str) {
    let is_sampled =
        SECONDS.into_iter().any(|seconds| call_traces(home, kind, sizes, options, seconds).is_some());
    assert!(is_sampled, "{} {kind}: {options}: no sample", home.display());
}

/// Runs the program's scenario for so many seconds for each size. Returns the number of samples in which
/// AsyncGetCallTrace took part; `None` if the small stacks have not been sampled.
fn call_traces(home: &Path, kind: &str, sizes: &[&str], options: &str, seconds: f64) -> Option<u64> {
    let run = JavaRun::new(home, "SmallStacks").argument(seconds).argument(kind);
    let run = sizes.iter().fold(run, |run, size| run.argument(size));
    let run = run.agent(&format!("{options},file=FILE")).run().expect_success();
    let printed: String = sizes.iter().map(|size| format!("{kind} {size} overrun by 0\n")).collect();
    assert_eq!(run.stdout, printed, "{}: {options}: {}", run.label, run.stderr);
    let lost = run.counter("handler.samples_dropped_small_stack");
    assert_eq!(lost, 0, "{}: {options}: {}", run.label, run.stderr);
    let undelivered = run.counter("handler.signals_undelivered");
    assert!(undelivered == 0 || sizes.contains(&"2048"), "{}: {options}: {}", run.label, run.stderr);
    let messages = run.messages();
    let is_sampled = match kind {
        "alternate" => {
            let is_refused = run.stderr.contains("event=page-faults is off");
            if is_refused {
                not_tested("page faults on alternate stacks, since perf events are not granted");
            }
            let engines = ENGINES.into_iter().filter(|engine| options.contains(engine));
            engines.filter(|engine| *engine != "page-faults" || !is_refused).all(|engine| {
                let stacks = stacks_of(&messages, engine, ("samples", "count"));
                let is_met = |size| stacks.iter().any(|stack| stack.thread == format!("small {size}"));
                sizes.iter().all(|size| is_met(*size) || (undelivered > 0 && *size == "2048"))
            })
        }
        _ => cpu_stacks(&messages).iter().any(|stack| stack.has("ddprof_spin")),
    };
    is_sampled.then(|| run.counter("handler.call_traces"))
}

/// Regression: AsyncGetCallTrace wrote up to 11 KiB below the stack, and so did the walk. A frame of 3.3 KiB
/// on 2 KiB ended the process. The test then passed without a sample on any of these stacks.
fn assert_alternate_stacks_are_not_overrun(cstack: &str) {
    for home in newest_or_all() {
        let options = format!("cpu=500us,wall=1ms,event=page-faults:1,cstack={cstack}");
        assert_not_overrun(&home, "alternate", &ALTERNATE, &options);
    }
}

#[test]
fn alternate_stacks_are_not_overrun_by_vm() {
    assert_alternate_stacks_are_not_overrun("vm");
}

#[test]
fn alternate_stacks_are_not_overrun_by_vmx() {
    assert_alternate_stacks_are_not_overrun("vmx");
}

#[test]
fn alternate_stacks_are_not_overrun_by_fp() {
    assert_alternate_stacks_are_not_overrun("fp");
}

#[test]
fn alternate_stacks_are_not_overrun_by_dwarf() {
    assert_alternate_stacks_are_not_overrun("dwarf");
}

#[test]
fn alternate_stacks_are_not_overrun_by_no() {
    assert_alternate_stacks_are_not_overrun("no");
}

/// On a small alternate stack of the thread, AsyncGetCallTrace is asked all the same. Its ids of methods lead
/// to no method from JDK 26 on, where the walk goes without it.
#[test]
fn the_vm_is_asked_on_alternate_stacks() {
    let (asking, others): (Vec<_>, Vec<_>) =
        java_homes().into_iter().partition(|home| java_version(home) < 26);
    let asked =
        |home: &Path, seconds| call_traces(home, "alternate", &["8192"], "cpu=500us,cstack=fp", seconds);
    for home in newest_of(asking) {
        let is_asked = SECONDS.into_iter().any(|seconds| asked(&home, seconds) > Some(0));
        assert!(is_asked, "{}", home.display());
    }
    for home in newest_of(others) {
        assert_eq!(asked(&home, SECONDS[0]), Some(0), "{}", home.display());
    }
}

/// Regression: SIGSEGV in handlers of three engines on 16 KiB.
#[test]
fn small_threads_are_not_overrun() {
    for home in newest_or_all() {
        for cstack in ["vm", "fp", "dwarf"] {
            let options = format!("cpu=500us,wall=1ms,event=page-faults:1,cstack={cstack}");
            assert_not_overrun(&home, "thread", &["16384"], &options);
        }
    }
}

/// Regression: SIGSEGV in handlers of two engines on 8 KiB.
#[test]
fn fibers_are_not_overrun() {
    for home in newest_or_all() {
        for cstack in ["vm", "fp", "dwarf"] {
            let options = format!("cpu=500us,wall=1ms,cstack={cstack}");
            assert_not_overrun(&home, "fiber", &["8192"], &options);
        }
    }
}
