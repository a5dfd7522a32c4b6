//! The owners of the locks for which threads wait; and finding them blocks no thread.

use std::collections::BTreeMap;

use otlpprof_model::attribute_keys::{LOCK_OWNER_NAME, MONITOR_CLASS};
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::{java_version, newest_or_all};
use otlpprof_testkit::stacks::{Stack, stacks_of};

const PROGRAM: &str = "programs.LockOwners.";

/// An owner's name and id.
type Owner = (Option<String>, Option<i64>);

#[test]
fn the_owner_is_the_thread_that_holds_the_lock() {
    for home in newest_or_all() {
        let version = java_version(&home);
        for is_virtual in [false, true].into_iter().filter(|is_virtual| !is_virtual || version >= 21) {
            // Until JDK 24 each virtual thread that waits for a monitor occupies a carrier.
            let mut run = JavaRun::new(&home, "LockOwners")
                .jvm_option("-Djdk.virtualThreadScheduler.parallelism=8")
                .agent("cpu=off,file=FILE,lock=1ms");
            if is_virtual {
                run = run.argument("virtual");
            }
            let run = run.run().expect_success();
            let counts = stacks_of(&run.messages(), "lock-contention", ("contentions", "count"));
            // The JDK's own threads wait for locks of the JDK's classes, too.
            let is_programs = |stack: &Stack| stack.has(&format!("{PROGRAM}enterAll"));
            let mut classes: BTreeMap<&str, BTreeMap<Owner, i64>> = BTreeMap::new();
            for line in run.stdout.lines() {
                let [class, name, id, times] = line.split(' ').collect::<Vec<_>>()[..] else {
                    panic!("{line}");
                };
                let is_monitor = class.starts_with("programs.");
                let (name, id) = (Some(name.to_owned()), Some(id.parse().unwrap()));
                let owner = match (is_virtual, is_monitor && version < 24) {
                    (false, _) => (name, id),
                    // The monitor belongs to the carrier.
                    (true, true) => (name, None),
                    (true, false) => (None, id),
                };
                *classes.entry(class).or_default().entry(owner).or_default() += times.parse::<i64>().unwrap();
            }
            assert_eq!(classes.len(), 3, "{}", run.stdout);
            for (class, expected) in classes {
                let mut found: BTreeMap<Owner, i64> = BTreeMap::new();
                for stack in
                    counts.iter().filter(|stack| is_programs(stack) && stack.labels[MONITOR_CLASS] == class)
                {
                    let owner = (stack.labels.get(LOCK_OWNER_NAME).cloned(), stack.owner_id);
                    *found.entry(owner).or_default() += stack.value;
                }
                let label = format!("{} virtual: {is_virtual} {class}: {found:?} of {expected:?}", run.label);
                let (all, waits) = (expected.values().sum::<i64>(), found.values().sum::<i64>());
                // A thread that is preempted between its state's change and its report may find the lock
                // free.
                assert!(waits <= all && waits * 20 >= all * 19, "{label}");
                let unknown = found.remove(&(None, None)).unwrap_or(0);
                let is_right =
                    |(owner, times): (&Owner, &i64)| expected.get(owner).is_some_and(|held| times <= held);
                assert!(found.iter().all(is_right), "{label}");
                // From JDK 24 on the object's header alone says that the object is locked, but not by which
                // thread, until other threads wait.
                let is_known = class != "programs.LockOwners$NewDoor" || version < 24;
                assert!(!is_known || unknown * 20 <= all, "{label}");
            }
        }
    }
}

/// On JDK 21 JVMTI's `SetThreadLocalStorage` waits until no virtual thread is being mounted or unmounted,
/// even if a thread sets its own storage. In this test the unmounting thread waits for the thread that is
/// about to wait for a monitor.
#[test]
fn a_wait_that_begins_does_not_wait_for_virtual_threads_to_unmount() {
    for home in newest_or_all().into_iter().filter(|home| java_version(home) >= 21) {
        let run = JavaRun::new(&home, "InterruptedUnmount").agent("cpu=off,file=FILE,lock=1ms");
        let run = run.run().expect_success();
        assert_eq!(run.stdout, "entered\nclosed\n", "{}", run.label);
        let waits = stacks_of(&run.messages(), "lock-contention", ("contentions", "count"));
        let is_door = |stack: &&Stack| stack.labels[MONITOR_CLASS] == "programs.InterruptedUnmount$Door";
        assert_eq!(waits.iter().filter(is_door).count(), 1, "{}", run.label);
    }
}
