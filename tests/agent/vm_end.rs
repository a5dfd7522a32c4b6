//! The end of the VM while a virtual thread is being unmounted, which cannot be completed before the VM has
//! ended. On JDK 21 JVMTI's `SetEventNotificationMode` waits for such a thread.

use std::path::Path;

use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::{java_homes_from, java_version};

/// All engines that call the VM when they stop.
const ENGINES: &str =
    "cpu=off,alloc,live,lock=1ms,wait=1ms,exceptions,trace=programs.InterruptedUnmount.hold,nativemem,jfr";

/// Runs the program to the VM's end.
fn end(home: &Path, arguments: &[&str], options: &str) -> Finished {
    let run = JavaRun::new(home, "InterruptedUnmount").argument("exit");
    let run = arguments.iter().fold(run, JavaRun::argument);
    let run = run.agent(&format!("{options},file=FILE")).run().expect_success();
    assert_eq!(run.stdout, "", "{} {options}", run.label);
    assert!(!run.stderr.contains("error: "), "{} {options}: {}", run.label, run.stderr);
    run
}

#[test]
fn engines_do_not_wait_for_virtual_threads_to_unmount() {
    for home in java_homes_from(21) {
        end(&home, &[], ENGINES);
        end(&home, &[], "cpu=off,exceptions,exceptions.thrown");
    }
}

/// Walkers that ask AsyncGetCallTrace enable the VM's events of classes.
#[test]
fn walkers_do_not_wait_for_virtual_threads_to_unmount() {
    for home in java_homes_from(21) {
        for walker in ["vm", "vmx", "fp", "dwarf", "no"] {
            end(&home, &[], &format!("cpu=1ms,cstack={walker}"));
        }
    }
}

/// Published contexts enable the VM's events of mounts.
#[test]
fn published_contexts_do_not_wait_for_virtual_threads_to_unmount() {
    for home in java_homes_from(21) {
        for options in [
            "cpu=1ms,context.publish.virtual",
            "cpu=1ms,context.publish=attributes,context.publish.virtual=true",
        ] {
            end(&home, &["context"], options);
        }
    }
}

/// The thread that stops the session waits in the VM for the virtual thread, and holds the lock that the end
/// of a session needs.
#[test]
fn a_session_that_another_thread_cannot_stop_is_given_up() {
    for home in java_homes_from(21) {
        let run = end(&home, &["stop"], "cpu=1ms,cstack=fp,lock=1ms");
        let is_given_up = run.stderr.contains("the JVM ended while a thread was starting or stopping");
        assert!(is_given_up || java_version(&home) != 21, "{}: {}", run.label, run.stderr);
    }
}
