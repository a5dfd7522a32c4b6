//! The kernel's frames on top of stacks: they are right for known work, the program's frames are the same as
//! without them, and a user who may not have them is notified.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use otlpprof_elf::build_id;
use otlpprof_elf::kernel::KERNEL_NAME;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::restricted::CAP_SYSLOG;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::stacks::{Stack, cpu_stacks, stacks_of};

/// Kernel functions below which a thread makes a system call or has a page fault: the names on x86_64 and on
/// aarch64.
const SYSTEM_CALL: [&str; 2] = ["entry_SYSCALL_64", "el0_svc"];
const PAGE_FAULT: [&str; 2] = ["exc_page_fault", "do_page_fault"];

fn program(home: &Path, kind: &str, times: u32, options: &str) -> JavaRun {
    let run = JavaRun::new(home, "PerfEvents").argument(kind).argument(times);
    run.agent(&format!("file=FILE,{options}"))
}

fn switches(run: &Finished) -> Vec<Stack> {
    stacks_of(&run.messages(), "context-switches", ("samples", "count"))
}

/// Whether this process may have kernel frames on this machine. Prints a message if not.
fn may_have_kernel_frames() -> bool {
    let run = program(&newest_or_all()[0], "parks", 10, "event=context-switches,event.kernel,cpu=off");
    let run = run.run().expect_success();
    let refused = run.stderr.contains("is off: ") || run.stderr.contains("without kernel frames");
    if refused {
        assert!(run.stderr.contains("allow it by"), "{}", run.stderr);
        not_tested("kernel frames, since the process may not have them");
    }
    !refused
}

/// The words of the line that the program prints for a thread.
fn words_of<'r>(run: &'r Finished, thread: &str) -> Vec<&'r str> {
    let mut lines = run.stdout.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    lines.find(|words| words[0] == thread).expect("a line for each thread")
}

fn kernel_frames(stack: &Stack) -> usize {
    stack.frames.iter().take_while(|frame| frame.frame_type == "kernel").count()
}

/// Whether a kernel frame has one of these words in its name.
fn is_in_kernel(stack: &Stack, functions: [&str; 2]) -> bool {
    let has = |name: &str| functions.iter().any(|function| name.contains(function));
    stack.frames[..kernel_frames(stack)].iter().any(|frame| has(&frame.name))
}

/// The number of times that each stack of a thread was seen in a method of the program, keyed by the names of
/// the program's frames.
fn programs_own(stacks: &[Stack], thread: &str, method: &str) -> BTreeMap<Vec<String>, i64> {
    let method = format!("programs.PerfEvents.{method}");
    let mut own = BTreeMap::new();
    for stack in stacks.iter().filter(|stack| stack.thread == thread && stack.has(&method)) {
        let frames = &stack.frames[kernel_frames(stack)..];
        assert!(frames.iter().all(|frame| frame.frame_type != "kernel"), "{stack:#?}");
        let names = frames.iter().map(|frame| frame.name.clone()).collect();
        *own.entry(names).or_default() += stack.value;
    }
    own
}

fn most_frequent(stacks: BTreeMap<Vec<String>, i64>) -> Vec<String> {
    stacks.into_iter().max_by_key(|(_, count)| *count).expect("stacks").0
}

#[test]
fn kernel_frames_are_on_top_and_the_programs_are_as_without() {
    if !may_have_kernel_frames() {
        return;
    }
    let notes = fs::read("/sys/kernel/notes").unwrap_or_default();
    let build_id = build_id::of_notes(&notes).map(|id| id.to_string()).unwrap_or_default();
    for home in newest_or_all() {
        let run = |options: &str| {
            let options = format!("event=context-switches,cpu=off,{options}");
            program(&home, "parks", 1_000, &options).run().expect_success()
        };
        let (with, without) = (run("remotesym"), run("remotesym,event.kernel=false"));
        let label = &with.label;
        let stacks = switches(&with);
        let mut in_calls = 0;
        assert!(switches(&without).iter().all(|stack| kernel_frames(stack) == 0), "{label}");
        for thread in ["fresh", "main"] {
            let all = programs_own(&stacks, thread, "park");
            // An interrupt during a park enters the kernel in another way: the program prints how often the
            // thread was preempted. Some samples have no kernel record of their place.
            let preempted: i64 = words_of(&with, thread)[2].parse().unwrap();
            let parks = stacks.iter().filter(|stack| {
                stack.thread == thread
                    && is_in_kernel(stack, SYSTEM_CALL)
                    && is_in_kernel(stack, ["futex"; 2])
            });
            let (in_call, sum) = (parks.map(|stack| stack.value).sum::<i64>(), all.values().sum::<i64>());
            in_calls += in_call;
            assert!(
                in_call > 0 && in_call * 100 >= (sum - preempted) * 95,
                "{label} {thread}: {in_call} of {sum}, {preempted} times preempted"
            );
            let expected = most_frequent(programs_own(&switches(&without), thread, "park"));
            assert_eq!(most_frequent(all), expected, "{label} {thread}");
        }
        let frames = || stacks.iter().flat_map(|stack| &stack.frames[..kernel_frames(stack)]);
        assert!(frames().any(|frame| frame.name.ends_with("schedule")), "{label}");
        // Kernel frames have names even if other native code is left to the backend, and never an address
        // that reveals the kernel's location.
        assert!(frames().all(|frame| !frame.name.is_empty() && frame.remote.is_none()), "{label}");
        let of_kernel = frames().filter(|frame| frame.address.0 != 0);
        assert!(of_kernel.clone().count() > 0 && of_kernel.clone().all(|frame| frame.address.0 < 1 << 32));
        let object = if build_id.is_empty() { "" } else { KERNEL_NAME };
        for frame in of_kernel {
            assert_eq!((&*frame.object, &*frame.build_id), (object, &*build_id), "{label}: {frame:?}");
        }
        // A sample stands for several switches if signals were merged.
        assert!(2 * with.counter("kernel.stacks") >= in_calls.unsigned_abs(), "{label}: {}", with.stderr);
        assert_eq!(with.counter("kernel.malformed"), 0, "{label}");
        assert_eq!(without.counter("kernel.stacks"), 0, "{label}");
    }
}

#[test]
fn cpu_time_in_the_kernel_has_its_frames_if_asked_for() {
    if !may_have_kernel_frames() {
        return;
    }
    for home in newest_or_all() {
        for (options, has_them) in [
            ("cpu.kernel", true),
            ("cpu.kernel,cstack=vmx", true),
            ("cpu.kernel,cstack=fp", true),
            ("cpu.kernel,cstack=dwarf", true),
            ("cpu.kernel,cstack=no", false),
            ("cpu.kernel=false", false),
        ] {
            // Short, for many samples in the faults, which take some ten milliseconds.
            let options = format!("cpu=100us,cpu.clock=perf,{options}");
            let run = program(&home, "faults", 30_000, &options).run().expect_success();
            let stacks = cpu_stacks(&run.messages());
            let touching = programs_own(&stacks, "main", "touch");
            assert!(!touching.is_empty(), "{} {options}: {}", run.label, run.stderr);
            // The stacks have all of a thread's time, as without kernel frames. Of the kernel's frames they
            // have only those for which the thread entered the kernel.
            let in_faults = stacks.iter().any(|stack| {
                stack.has("programs.PerfEvents.touch")
                    && is_in_kernel(stack, PAGE_FAULT)
                    && !is_in_kernel(stack, SYSTEM_CALL)
            });
            assert_eq!(in_faults, has_them, "{} {options}", run.label);
            let is_any =
                stacks.iter().any(|stack| stack.frames.iter().any(|frame| frame.frame_type == "kernel"));
            assert_eq!(is_any, has_them, "{} {options}", run.label);
        }
    }
}

#[test]
fn refused_kernel_frames_are_one_line_if_requested() {
    if !may_have_kernel_frames() {
        return;
    }
    let home = &newest_or_all()[0];
    let lines = |run: &Finished| -> Vec<String> {
        run.stderr.lines().filter(|line| line.contains("kernel frames")).map(str::to_owned).collect()
    };
    for (options, says) in [
        ("cpu=off,event.kernel=auto", None),
        (
            "cpu=off,event.kernel",
            Some("event.kernel: stacks of context-switches are without kernel frames: "),
        ),
        ("cpu.clock=perf,cpu.kernel", Some("cpu.kernel: stacks are without kernel frames: ")),
    ] {
        let run = program(home, "parks", 200, &format!("event=context-switches,{options}"));
        let run = run.without_capability(CAP_SYSLOG).run().expect_success();
        let stacks = switches(&run);
        if stacks.iter().any(|stack| kernel_frames(stack) > 0) {
            not_tested("hidden kernel addresses, which this machine shows to all");
            return;
        }
        let printed = lines(&run);
        assert_eq!(printed.len(), usize::from(says.is_some()), "{options}: {}", run.stderr);
        if let Some(says) = says {
            let helps = "allow it by CAP_SYSLOG, or by sysctl kernel.kptr_restrict=0";
            assert!(printed[0].contains(says) && printed[0].contains(helps), "{options}: {}", run.stderr);
        }
        assert!(!programs_own(&stacks, "main", "park").is_empty(), "{options}: {}", run.stderr);
    }
    let run = program(home, "parks", 10, "cpu.clock=timer,cpu.kernel").run().expect_success();
    let printed = lines(&run);
    assert!(printed.len() == 1 && printed[0].contains("they need the perf clock"), "{}", run.stderr);
}

/// Threads beyond the user's limit of locked memory are sampled like the others, without kernel frames.
#[test]
fn threads_without_a_ring_are_sampled_without_kernel_frames() {
    if !may_have_kernel_frames() {
        return;
    }
    let number = |path: &str| -> u64 { fs::read_to_string(path).unwrap().trim().parse().unwrap() };
    // SAFETY: sysconf takes a number, and has no memory effects.
    let [page_bytes, processors] =
        [libc::_SC_PAGESIZE, libc::_SC_NPROCESSORS_ONLN].map(|name| unsafe { libc::sysconf(name) } as u64);
    let rings = number("/proc/sys/kernel/perf_event_mlock_kb") * 1024 * processors / (2 * page_bytes);
    if rings > 1_000 || fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap().trim() == "-1" {
        not_tested("threads without rings, of which this machine has too many");
        return;
    }
    let home = &newest_or_all()[0];
    let run = JavaRun::new(home, "ThreadStates").argument(1).argument(rings + 200);
    let run = run.agent("file=FILE,event=context-switches,cpu=off").without_locked_memory();
    let run = run.run().expect_success();
    let without = run.counter("kernel.threads_without");
    assert!(without >= 200, "{without} beyond {rings}: {}", run.stderr);
    assert_eq!(run.counter("event.threads_unsampled"), 0, "{}", run.stderr);
    let parked: Vec<_> = switches(&run).into_iter().filter(|stack| stack.thread == "parked").collect();
    let (with, without): (Vec<_>, Vec<_>) = parked.iter().partition(|stack| kernel_frames(stack) > 0);
    assert!(!with.is_empty() && !without.is_empty(), "{} and {}", with.len(), without.len());
}
