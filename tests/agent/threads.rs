//! The thread in a sample's attributes.

use crate::agent_support::stacks::cpu_stacks;
use crate::agent_support::{JavaRun, java_homes, java_version};

#[test]
fn a_thread_that_renames_itself_is_called_by_its_new_name() {
    for home in java_homes() {
        let run = JavaRun::new(&home, "Renamed")
            .argument(2.4)
            .agent("cpu=2ms,interval=300ms,file=FILE")
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
    for home in java_homes() {
        let run = JavaRun::new(&home, "NativePthreads")
            .argument(2)
            .agent("cpu=2ms,file=FILE")
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
        assert!(long > 10 && short > 0, "{}: {long}, {short}", run.label);
    }
}

/// Compilers, which have a JavaThread that is hidden from Java, and collectors, which have none.
#[test]
fn threads_of_the_vm_have_the_kernels_names() {
    for home in java_homes() {
        let run = JavaRun::new(&home, "AllocationLoop").argument(2);
        let run =
            run.jvm_option("-XX:+UseParallelGC").jvm_option("-Xmx64m").jvm_option("-XX:ParallelGCThreads=2");
        let run = run.agent("cpu=100us,interval=500ms,file=FILE").run().expect_success();
        let stacks = cpu_stacks(&run.messages());
        let of_vm: Vec<_> = stacks.iter().filter(|stack| stack.os_id.is_some()).collect();
        for kind in ["C1 CompilerThre", "GC Thread#", "VM Thread"] {
            let is_there = of_vm.iter().any(|stack| stack.thread.contains(kind));
            let names: std::collections::BTreeSet<_> = of_vm.iter().map(|stack| &stack.thread).collect();
            assert!(is_there, "{}: no sample of {kind} among {names:?}", run.label);
        }
        assert!(of_vm.iter().all(|stack| stack.thread.len() <= 15), "{}", run.label);
    }
}

#[test]
fn every_sample_names_its_thread() {
    for home in java_homes() {
        let run = JavaRun::new(&home, "ShortThreads")
            .argument(2)
            .agent("cpu=2ms,interval=500ms,file=FILE")
            .run()
            .expect_success();
        let (mut java, mut all) = (0, 0);
        for stack in cpu_stacks(&run.messages()) {
            assert!(!stack.thread.is_empty() || stack.os_id.is_some(), "{}: {stack:?}", run.label);
            assert!(!stack.thread.is_empty() || stack.thread_id.is_none(), "{}: {stack:?}", run.label);
            // The kernel's id identifies threads that are not Java threads, whether they have a name or not.
            assert_eq!(stack.os_id.is_some(), stack.thread_id.is_none(), "{}: {stack:?}", run.label);
            if stack.frames.iter().any(|frame| frame.name.starts_with("programs.ShortThreads.")) {
                all += stack.value;
                java += if stack.thread_id.is_none() { 0 } else { stack.value };
            }
        }
        // Threads that live for some milliseconds have names, though they have ended before the interval
        // ends.
        assert!(all > 10 && java * 100 >= all * 99, "{}: {java} of {all} named", run.label);
    }
}

#[test]
fn virtual_threads_have_no_id() {
    let homes: Vec<_> = java_homes().into_iter().filter(|home| java_version(home) >= 21).collect();
    assert!(homes.len() >= 2 || std::env::var_os("CI").is_none(), "a JDK 21 and a JDK 25: {homes:?}");
    for home in homes {
        let run = JavaRun::new(&home, "VirtualThreads")
            .argument(2)
            .agent("cpu=2ms,file=FILE")
            .run()
            .expect_success();
        let mut all = 0;
        for stack in cpu_stacks(&run.messages()) {
            if stack.has("programs.VirtualThreads.burn") {
                assert_eq!(stack.thread_id, None, "{}: {stack:?}", run.label);
                all += stack.value;
            }
        }
        assert!(all > 10, "{}: {all} samples of virtual threads", run.label);
    }
}
