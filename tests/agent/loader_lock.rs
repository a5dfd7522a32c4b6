//! An allocator that unwinds inside malloc, as heap profilers do, waits for the dynamic linker's lock while
//! it holds its own lock. So the agent must neither allocate nor take a lock while it holds the linker's lock
//! (`native/unwindingmalloc` ends a process that does).

use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::newest_or_all;

const PLUGINS: [&str; 2] = [otlpprof_testkit::products::PLUGIN_A, otlpprof_testkit::products::PLUGIN_B];

fn with_allocator(run: JavaRun) -> JavaRun {
    run.variable("LD_PRELOAD", otlpprof_testkit::products::UNWINDING_MALLOC)
}

/// The number of visits of the linker's list, and the number of allocations, that the allocator reports.
fn seen(run: &Finished) -> (u64, u64) {
    let line = run.stderr.lines().find_map(|line| line.strip_prefix("unwinding malloc: "));
    let line = line.unwrap_or_else(|| panic!("{}: no report\n{}", run.label, run.stderr));
    let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    (numbers[0], numbers[1])
}

#[test]
fn a_jvm_starts_under_an_allocator_that_unwinds() {
    for home in newest_or_all() {
        for options in ["cpu=1ms", "cpu=1ms,remotesym,wall,alloc,lock,exceptions,nativemem,nativemem.leaks"] {
            let run = with_allocator(JavaRun::new(&home, "Demo").argument(1.0));
            let run = run.agent(&format!("{options},file=FILE")).run().expect_success();
            let (visits, allocations) = seen(&run);
            assert!(visits > 0 && allocations > 1000, "{}: {visits}, {allocations}", run.label);
            assert!(!run.messages().is_empty(), "{}", run.label);
        }
    }
}

/// Libraries that are loaded and unloaded are read, and their imports are redirected and restored, all the
/// time.
#[test]
fn libraries_come_and_go_under_an_allocator_that_unwinds() {
    for home in newest_or_all() {
        let run = with_allocator(JavaRun::new(&home, "PluginChurn").argument(1.5));
        let run = run.argument(PLUGINS[0]).argument(PLUGINS[1]);
        let run = run.agent("cpu=500us,nativemem=64k,file=FILE").run().expect_success();
        assert!(seen(&run).0 > 0 && !run.messages().is_empty(), "{}", run.label);
    }
}

#[test]
fn the_allocator_ends_a_process_that_allocates_or_locks_with_the_linkers_lock() {
    let Some(home) = newest_or_all().pop() else { return };
    for (check, function) in [("malloc", "malloc"), ("mutex", "pthread_mutex_lock"), ("futex", "futex")] {
        let run = with_allocator(JavaRun::new(&home, "Hello")).variable("UNWINDING_MALLOC_SELF_CHECK", check);
        let run = run.run();
        assert_eq!(libc::WEXITSTATUS(run.status), 86, "{check}: {}", run.stderr);
        let printed = format!("unwinding malloc: {function} while the dynamic linker's list is visited");
        assert!(run.stderr.contains(&printed), "{check}: {}", run.stderr);
    }
}
