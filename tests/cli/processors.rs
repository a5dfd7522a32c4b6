//! Commands that work on all processors: their results equal the results of one processor, byte for byte.

use std::path::Path;
use std::process::Command;
use std::thread;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use otlpprof_otlp::wire::ProfilesData;
use otlpprof_testkit::commands::run_otlpprof;
use otlpprof_testkit::otlp_fixture::{DURATION, TIME};
use otlpprof_testkit::profile_files::{CPU, Files, Spec, message};

/// Messages of one process. Each has stacks of its own, and functions and callers of the others.
fn messages() -> Vec<ProfilesData> {
    let of_message = |number: usize| {
        let name = |at: usize| format!("com.example.shop.Cart.f{}", at % 97);
        let stack = |at: usize| (0..3 + at % 11).rev().map(|depth| name(at * depth + number)).collect();
        let stacks: Vec<Vec<String>> = (0..300).map(stack).collect();
        let stacks: Vec<Vec<&str>> =
            stacks.iter().map(|stack| stack.iter().map(String::as_str).collect()).collect();
        let threads = ["a", "b", "c"];
        let samples = (1..).zip(&stacks).map(|(value, stack)| (&stack[..], threads[stack.len() % 3], value));
        let samples: Vec<_> = samples.collect();
        let start = TIME + number as u64 * DURATION;
        message("1", &[Spec { types: CPU, period: 1_000_000, start, samples: &samples }])
    };
    (0..40).map(of_message).collect()
}

/// Messages of one process with deep stacks of few functions. The stacks share few callers, and there are
/// many for each function. So several threads sum them by function.
fn messages_of_deep_stacks() -> Vec<ProfilesData> {
    const FUNCTIONS: usize = 20;
    let names: Vec<String> = (0..FUNCTIONS).map(|at| format!("com.example.shop.Cart.f{at}")).collect();
    let mut state = 1_u32;
    let mut stack = || -> Vec<&str> {
        let frames = (0..40).map(|_| {
            state = state.wrapping_mul(0x9e37_79b1).wrapping_add(11);
            &*names[(state >> 16) as usize % FUNCTIONS]
        });
        frames.collect()
    };
    let of_message = |number: u64| {
        let stacks: Vec<_> = (0..10 * FUNCTIONS).map(|_| stack()).collect();
        let samples: Vec<_> = (1..).zip(&stacks).map(|(value, stack)| (&stack[..], "a", value)).collect();
        let start = TIME + number * DURATION;
        message("1", &[Spec { types: CPU, period: 1_000_000, start, samples: &samples }])
    };
    (0..4).map(of_message).collect()
}

/// Runs a command on the first so many of this process's processors. Returns the command's result.
fn result(processors: usize, arguments: &[&str]) -> Vec<u8> {
    let run = || {
        let usable = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let mut wanted = CpuSet::new();
        let all = (0..CpuSet::count()).filter(|&cpu| usable.is_set(cpu).unwrap());
        all.take(processors).for_each(|cpu| wanted.set(cpu).unwrap());
        // Of this thread, whose child inherits the set.
        sched_setaffinity(Pid::from_raw(0), &wanted).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_otlpprof")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    thread::scope(|scope| scope.spawn(run).join().unwrap())
}

/// Runs a command on one processor and on all.
fn assert_equal_results(arguments: &[&str]) {
    let alone = result(1, arguments);
    assert!(!alone.is_empty(), "{arguments:?}");
    assert!(result(usize::MAX, arguments) == alone, "{arguments:?}");
}

#[test]
fn results_do_not_depend_on_the_number_of_processors() {
    let files = Files::new();
    let file = files.add("messages.otlp", &messages());
    let text = files.path("stacks.collapsed");
    run_otlpprof(&["export", &file, "--to", "collapsed", "-o", &text]).success();
    assert!(Path::new(&text).metadata().unwrap().len() > 1 << 20, "several blocks of lines");
    for file in [&*file, &*text] {
        for arguments in [
            &["report", file][..],
            &["report", "--tree", "--threads", file],
            &["flamegraph", "-o", "-", file],
            &["export", "--to", "collapsed", "-o", "-", file],
            &["export", "--to", "pprof", "-o", "-", file],
            &["export", "--to", "speedscope", "-o", "-", file],
            &["export", "--to", "firefox", "-o", "-", file],
        ] {
            assert_equal_results(arguments);
        }
    }
}

#[test]
fn sums_by_function_do_not_depend_on_the_number_of_processors() {
    let files = Files::new();
    let file = files.add("messages.otlp", &messages_of_deep_stacks());
    assert_equal_results(&["report", &file]);
    assert_equal_results(&["report", "--format", "json", &file]);
}
