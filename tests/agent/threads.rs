//! The thread in a sample's attributes.

use crate::estimate::assert_share;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::{java_homes_from, newest_or_all};
use otlpprof_testkit::stacks::cpu_stacks;

#[test]
fn a_thread_that_renames_itself_is_called_by_its_new_name() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "Renamed")
            .argument(2.4)
            .agent("cpu=200us,interval=300ms,file=FILE")
            .run()
            .expect_success();
        let id: i64 = run.stdout.trim().strip_prefix("id=").unwrap().parse().unwrap();
        let messages = run.messages();
        let mut names = Vec::new();
        for stack in messages.iter().flat_map(|message| cpu_stacks(std::slice::from_ref(message))) {
            if stack.thread.ends_with("-name") {
                assert_eq!((stack.thread_id, stack.os_id), (Some(id), None), "{}: {stack:?}", run.label);
                names.push(stack.thread);
            } else {
                assert!(!stack.has("programs.Renamed.burn"), "{}: {stack:?}", run.label);
            }
        }
        names.dedup();
        assert_eq!(names, ["first-name", "second-name"], "{}", run.label);
    }
}

#[test]
fn threads_that_were_never_attached_have_the_kernels_name_and_id() {
    // The library names each thread. A thread that has ended before its name was read has no name.
    const NAMES: [&str; 2] = ["ddprof-pthread", ""];
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "NativePthreads")
            .argument(2)
            .agent("cpu=200us,file=FILE")
            .run()
            .expect_success();
        let (mut long, mut short) = (0, 0);
        for stack in cpu_stacks(&run.messages()) {
            let is_long = stack.has("burn_for_milliseconds");
            let is_short = stack.has("burn_rounds");
            if is_long || is_short {
                assert!(NAMES.contains(&&*stack.thread), "{}: {stack:?}", run.label);
                assert_eq!(stack.thread_id, None, "{}: {stack:?}", run.label);
                assert!(stack.os_id.is_some(), "{}: {stack:?}", run.label);
                *if is_long { &mut long } else { &mut short } += stack.value;
            } else if stack.thread == "main" {
                assert!(stack.thread_id.is_some() && stack.os_id.is_none(), "{}: {stack:?}", run.label);
            }
        }
        // Each kind of thread runs once at least.
        assert!(long > 0 && short > 0, "{}: {long}, {short}", run.label);
    }
}

/// Compilers, which have a JavaThread that is hidden from Java, and collectors, which have none.
#[test]
fn threads_of_the_vm_have_the_kernels_names() {
    // From JDK 26 on, `C1 Comp..hread0`.
    const KINDS: [&str; 3] = ["C1 Comp", "GC Thread#", "VM Thread"];
    for home in newest_or_all() {
        // The longer runs are for the case that other programs have used the CPU.
        let has_all_kinds = [2, 10, 50].into_iter().any(|seconds| {
            let run = JavaRun::new(&home, "AllocationLoop").argument(seconds);
            let run = run.jvm_option("-XX:+UseParallelGC").jvm_option("-Xmx64m");
            let run = run.jvm_option("-XX:ParallelGCThreads=2");
            let run = run.agent("cpu=100us,interval=500ms,file=FILE").run().expect_success();
            let stacks = cpu_stacks(&run.messages());
            let of_vm: Vec<_> = stacks.iter().filter(|stack| stack.os_id.is_some()).collect();
            assert!(of_vm.iter().all(|stack| stack.thread.len() <= 15), "{}", run.label);
            let names: std::collections::BTreeSet<_> = of_vm.iter().map(|stack| &stack.thread).collect();
            println!("{}: {names:?}", run.label);
            KINDS.iter().all(|kind| names.iter().any(|name| name.contains(kind)))
        });
        assert!(has_all_kinds, "{}: no sample of each of {KINDS:?}", home.display());
    }
}

#[test]
fn every_sample_names_its_thread() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "ShortThreads")
            .argument(2)
            .agent("cpu=200us,timestamps,interval=500ms,file=FILE")
            .run()
            .expect_success();
        let (mut java, mut all) = (0, 0);
        for stack in cpu_stacks(&run.messages()) {
            assert!(!stack.thread.is_empty() || stack.os_id.is_some(), "{}: {stack:?}", run.label);
            assert!(!stack.thread.is_empty() || stack.thread_id.is_none(), "{}: {stack:?}", run.label);
            // The kernel's id identifies threads that are not Java threads, whether they have a name or not.
            assert_eq!(stack.os_id.is_some(), stack.thread_id.is_none(), "{}: {stack:?}", run.label);
            if stack.frames.iter().any(|frame| frame.name.starts_with("programs.ShortThreads.")) {
                all += stack.times;
                java += if stack.thread_id.is_none() { 0 } else { stack.times };
            }
        }
        // Threads that live for some milliseconds have names, though they have ended before the interval
        // ends.
        assert_share(java, all, 0.99..=1.0, &format!("{}: named", run.label));
    }
}

#[test]
fn virtual_threads_have_no_id() {
    for home in java_homes_from(21) {
        let run = JavaRun::new(&home, "VirtualThreads")
            .argument(2)
            .agent("cpu=100us,file=FILE")
            .run()
            .expect_success();
        let mut all = 0;
        for stack in cpu_stacks(&run.messages()) {
            if stack.has("programs.VirtualThreads.burn") {
                assert_eq!(stack.thread_id, None, "{}: {stack:?}", run.label);
                all += stack.value;
            }
        }
        assert!(all > 0, "{}: no samples of virtual threads", run.label);
    }
}
