//! No allocation and no lock in the agent's signal handler, in real JVMs: the demo's program runs with a
//! preloaded library that ends the process at either (`native/interposer`).

use std::path::Path;

use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::{everything, newest_or_all};

/// Each clock, and further features of the handler with one of them. Each version runs one half of the
/// options, in turn.
const OPTIONS: [&str; 8] = [
    "remotesym,cpu.clock=perf",
    "remotesym,cpu.clock=timer",
    "remotesym,cpu.clock=itimer",
    "cpu.clock=timer",
    "remotesym,cpu.clock=timer,cstack=vmx",
    "remotesym,cpu.clock=timer,cstack=dwarf",
    "remotesym,cpu.clock=timer,cstack=fp",
    "cpu.clock=timer,cstack=no",
];

/// Runs the demo's program under the agent and the guard, with one environment variable for the guard.
fn demo(home: &Path, options: &str, (name, value): (&'static str, &str)) -> Finished {
    JavaRun::new(home, "Demo")
        .argument(1.5)
        // An expected abort must leave no core dump.
        .jvm_option("-XX:-CreateCoredumpOnCrash")
        .agent(&format!("file=FILE,cpu=1ms,{options}"))
        .variable("LD_PRELOAD", otlpprof_testkit::products::HANDLER_GUARD)
        .variable(name, value)
        .run()
}

/// The number of handler calls that the guard reported.
fn guarded_calls(run: &Finished) -> Option<u64> {
    let line = run.stderr.lines().find_map(|line| line.strip_prefix("handler guard: "))?;
    line.strip_suffix(" calls guarded")?.parse().ok()
}

#[test]
fn the_handler_neither_allocates_nor_locks() {
    let homes = newest_or_all();
    for (version, home) in homes.iter().enumerate() {
        for (number, options) in OPTIONS.into_iter().enumerate() {
            if !everything() && (version + number) % homes.len().min(2) != 0 {
                continue;
            }
            let run = demo(home, options, ("HANDLER_GUARD_REPORT", "1")).expect_success();
            let what = format!("{} {options}: {}", run.label, run.stderr);
            let calls = guarded_calls(&run).unwrap_or_else(|| panic!("no report: {what}"));
            println!("{} {options}: {calls} calls of the handler", home.display());
            assert!(calls >= 50, "{what}");
        }
    }
}

/// Handlers interrupt threads that are in the middle of writing their context.
#[test]
fn the_handler_neither_allocates_nor_locks_where_threads_have_a_context() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "ContextStress")
            .argument(2)
            .argument(2)
            .argument(20)
            .agent("file=FILE,cpu=1ms,cpu.clock=timer")
            .variable("LD_PRELOAD", otlpprof_testkit::products::HANDLER_GUARD)
            .variable("HANDLER_GUARD_REPORT", "1")
            .run()
            .expect_success();
        assert!(guarded_calls(&run).is_some_and(|calls| calls >= 50), "{}: {}", run.label, run.stderr);
    }
}

/// The guard ends the process at each kind of forbidden call.
#[test]
fn the_guard_ends_a_process_that_does_either() {
    let Some(home) = newest_or_all().pop() else { return };
    for (check, function) in [
        ("malloc", "malloc"),
        ("free", "free"),
        ("mmap", "mmap"),
        ("mutex", "pthread_mutex_lock"),
        ("rwlock", "pthread_rwlock_rdlock"),
        ("cond", "pthread_cond_signal"),
        ("semaphore", "sem_wait"),
        ("sleep", "nanosleep"),
        ("futex", "futex"),
    ] {
        let run = demo(&home, "cpu.clock=timer", ("HANDLER_GUARD_SELF_CHECK", check));
        assert!(!run.succeeded(), "{check}: {}", run.stderr);
        // The text may not be at the start of a line: the JVM may be writing a line of its own.
        let expected = format!("handler guard: {function}");
        assert!(run.stderr.contains(&expected), "{check}: {}", run.stderr);
    }
}
