//! Prepares the kernel for perf events before a session starts. The test is a process of its own, because it
//! counts its descriptors.

use std::fs;
use std::thread;
use std::time::Duration;

use otlpprof_core::thread::ClockKind;
use otlpprof_sampling::config::ClockChoice;
use otlpprof_sampling::cpu;

fn perf_events() -> usize {
    let links =
        fs::read_dir("/proc/self/fd").unwrap().filter_map(|fd| fs::read_link(fd.unwrap().path()).ok());
    links.filter(|target| target.to_string_lossy().contains("perf_event")).count()
}

fn is_warming() -> bool {
    let mut tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path().join("comm"));
    tasks.any(|comm| fs::read_to_string(comm).is_ok_and(|name| name.trim() == "otlpprof-warm"))
}

#[test]
fn a_warm_up_opens_an_event_where_one_may_be_used_and_leaves_nothing() {
    for (choice, needs_perf) in [
        (ClockChoice::Auto, true),
        (ClockChoice::Only(ClockKind::Perf), true),
        (ClockChoice::Only(ClockKind::Timer), false),
        (ClockChoice::Only(ClockKind::Itimer), false),
    ] {
        let warming = cpu::warm_up(choice);
        assert_eq!(warming.is_some(), needs_perf, "{choice:?}");
        if let Some(warming) = warming {
            warming.join().unwrap();
        }
        assert_eq!(perf_events(), 0, "{choice:?}");
        // The kernel may end the thread a moment later than the C library.
        while is_warming() {
            thread::sleep(Duration::from_millis(1));
        }
    }
}
