//! JVMs in containers: with namespaces of users, processes and mounts, with a read-only root without /tmp,
//! without perf events, and with little memory and half a processor.

use otlpprof_testkit::java_run::containers::ControlGroup;
use otlpprof_testkit::java_run::{JavaRun, containers};
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::stacks::{Stack, stacks_of};

const MEMORY_BYTES: u64 = 200 << 20;
const PROCESSOR_PERCENT: u64 = 50;

/// The profile of each engine, and the counts in it.
const PROFILES: [(&str, &str); 8] = [
    ("cpu", "samples"),
    ("wall", "samples"),
    ("alloc-objects", "alloc_objects"),
    ("live-heap", "inuse_objects"),
    ("lock-contention", "contentions"),
    ("wait", "waits"),
    ("exceptions", "exceptions"),
    ("nativemem", "alloc_objects"),
];

/// A group with these limits. Without one the rest is tested.
fn limited() -> Option<ControlGroup> {
    let group = ControlGroup::limiting(MEMORY_BYTES, PROCESSOR_PERCENT);
    group.inspect_err(|e| eprintln!("no limits are tested, since no control group can be created: {e}")).ok()
}

#[test]
fn every_engine_works_in_a_container_and_one_line_says_what_is_off() {
    if !containers::are_permitted() {
        return not_tested("a JVM in a container: unshare is not permitted");
    }
    for home in newest_or_all() {
        let group = limited();
        let run = JavaRun::new(&home, "MixedWork").argument(4).jvm_option("-Xmx64m");
        let run = run.in_container(group.as_ref()).without_perf_events();
        let engines = "cpu=1ms,wall,alloc=64k,live=64k,lock,wait,exceptions,nativemem=64k,interval=1s";
        let run = run.agent(&format!("{engines},file=FILE")).run().expect_success();
        let is_limited = group.is_none_or(|group| group.periods_throttled() > 0);
        assert!(is_limited, "{}: the limit is not in effect", run.label);
        let lines = |part: &str| run.stderr.lines().filter(|line| line.contains(part)).count();
        assert_eq!(lines("perf events are not granted"), 1, "{}: {}", run.label, run.stderr);
        assert_eq!(lines(" is off"), 0, "{}: {}", run.label, run.stderr);
        let messages = run.messages();
        for (profile, values) in PROFILES {
            let stacks = stacks_of(&messages, profile, (values, "count"));
            let is_of_program = |stack: &Stack| {
                // Native memory is allocated by the VM, too, and here only by the VM.
                profile == "nativemem"
                    || stack.frames.iter().any(|frame| frame.name.starts_with("programs.MixedWork."))
            };
            assert!(stacks.iter().any(is_of_program), "{}: no {profile}: {}", run.label, run.stderr);
        }
    }
}
