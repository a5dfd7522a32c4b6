//! The effects of a session on the process and its children, and its behaviour at resource limits.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io, mem, ptr, thread};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use otlpprof_core::thread::ClockKind;
use otlpprof_sampling::cpu::{self, StartError};
use otlpprof_sampling::thread_records;
use otlpprof_signal::cpu_counters::CpuCounts;
use otlpprof_testkit::sampling_session::*;
use otlpprof_testkit::stolen_time::Measured;
use otlpprof_testkit::warnings::{keep_warnings, warnings_with};

fn names(directory: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The descriptors, timers and threads of the process, and the process timer.
#[derive(Debug, PartialEq)]
struct Belongings {
    descriptors: usize,
    timers: String,
    threads: BTreeSet<String>,
    itimer_us: i64,
}

fn belongings() -> Belongings {
    // SAFETY: an all-zero itimerval is valid, and the kernel writes to it.
    let itimer = unsafe {
        let mut itimer: libc::itimerval = mem::zeroed();
        libc::getitimer(libc::ITIMER_PROF, &raw mut itimer);
        itimer
    };
    Belongings {
        descriptors: names("/proc/self/fd").len(),
        timers: fs::read_to_string("/proc/self/timers").unwrap(),
        threads: names("/proc/self/task"),
        itimer_us: itimer.it_value.tv_sec * 1_000_000 + itimer.it_value.tv_usec,
    }
}

fn resident_kib() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The contents of the GOT slots through which this program calls pthread_create.
fn imports() -> Vec<u64> {
    use otlpprof_elf::loader_list::loaded_objects;
    use otlpprof_elf::relocations::import_slots;
    let mut words = Vec::new();
    for image in loaded_objects().images {
        for slot in import_slots(&image, &["pthread_create"]).unwrap().slots {
            // SAFETY: the slot is a word of a loaded object, which stays loaded.
            words.push(unsafe { *(slot.address.0 as *const u64) });
        }
    }
    words
}

#[test]
fn a_thousand_cycles_leak_nothing() {
    let _guard = serially();
    let mut kinds = thread_clocks();
    kinds.push(ClockKind::Itimer);
    for kind in kinds {
        let cycle = || {
            let session = start(&config(kind));
            thread::spawn(|| burn(Duration::from_micros(300))).join().unwrap();
            burn(Duration::from_micros(300));
            session.stop();
        };
        let imports_before = imports();
        assert!(!imports_before.is_empty());
        (0..50).for_each(|_| cycle());
        // A joined thread may stay visible for a moment, which is long on a busy machine.
        let mut before = belongings();
        loop {
            thread::sleep(Duration::from_millis(50));
            let now = belongings();
            if now == before {
                break;
            }
            before = now;
        }
        // A leak grows with the cycles. Memory that the C library keeps for threads that happened to overlap
        // does not.
        let grows = || {
            let resident_before = resident_kib();
            (0..1000).for_each(|_| cycle());
            let grown = resident_kib().saturating_sub(resident_before);
            println!("{}: {grown} KiB more after 1,000 cycles", kind.name());
            grown >= 1024
        };
        assert!((0..4).any(|_| !grows()), "{}: each 1,000 cycles take more memory", kind.name());
        let give_up = Instant::now() + PATIENCE;
        while belongings() != before && Instant::now() < give_up {
            thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(belongings(), before, "{}", kind.name());
        assert_eq!(imports(), imports_before);
        assert_eq!(thread_records::thread_count(), 0);
    }
}

#[test]
fn one_session_at_a_time() {
    let _guard = serially();
    let session = start(&config(ClockKind::Timer));
    assert!(matches!(cpu::start(&config(ClockKind::Timer)), Err(StartError::AlreadyRunning)));
    session.stop();
    start(&config(ClockKind::Timer)).stop();
}

/// Runs `child` in a forked child. Returns its exit code or, if a signal ended it, the signal's number,
/// negated.
fn in_forked_child(child: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child ends by _exit and so runs no destructor or exit handler of the parent's. Its other
    // actions are the subject of the test.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            libc::_exit(child());
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) }
    }
}

#[test]
fn a_forked_child_is_not_profiled_and_holds_nothing() {
    let _guard = serially();
    for kind in thread_clocks() {
        let before = names("/proc/self/fd").len();
        let session = start(&config(kind));
        let others: Vec<_> = (0..4).map(|_| thread::spawn(|| burn(Duration::from_millis(300)))).collect();
        let code = in_forked_child(|| {
            if !fs::read_to_string("/proc/self/timers").unwrap().is_empty() {
                return 1;
            }
            if names("/proc/self/fd").len() > before {
                return 2;
            }
            // Long enough for any remaining clock to fire.
            let sampled_before = sampled();
            burn(Duration::from_millis(100));
            if sampled() != sampled_before {
                return 3;
            }
            // The imports still refer to our functions, so creating a thread must work all the same.
            if thread::spawn(|| burn(Duration::from_millis(20))).join().is_err() {
                return 4;
            }
            if !matches!(cpu::start(&config(kind)), Err(StartError::ForkedChild)) {
                return 5;
            }
            drop(session);
            // If the fork happened in a sampled thread, the end of that thread must not access anything.
            0
        });
        assert_eq!(code, 0, "{}", kind.name());
        others.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// Lowers a limit while `body` runs, and until a panic leaves it.
fn with_limit<T>(resource: Resource, limit: u64, body: impl FnOnce() -> T) -> T {
    let (before, most) = getrlimit(resource).unwrap();
    setrlimit(resource, limit, most).unwrap();
    let result = catch_unwind(AssertUnwindSafe(body));
    setrlimit(resource, before, most).unwrap();
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Burns CPU time in eight threads at once, then in their heirs. The result of `hold`, which is called after
/// the start, is held while the eight threads run. Returns the sums and the change of the counters.
fn eight_threads<T>(kind: ClockKind, hold: impl FnOnce() -> T) -> (Measured, CpuCounts) {
    let counts = cpu::counts();
    let session = start(&config(kind));
    let before = program_cpu();
    let held = hold();
    let threads: Vec<_> = (0..8).map(|_| thread::spawn(|| burn(Duration::from_millis(300)))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let used = settle_program(before);
    drop(held);
    session.stop();
    (Measured { sampled: sampled(), used }, cpu::counts().since(&counts))
}

/// The RLIMIT_NOFILE with which `count` more descriptors can be opened. The limit bounds the descriptors'
/// numbers, and the open ones need not be the lowest: the parent of the process may have left some open.
fn limit_with_room_for(count: usize) -> u64 {
    // SAFETY: F_GETFD only reads the descriptor's flags.
    let is_free = |fd: &i32| unsafe { libc::fcntl(*fd, libc::F_GETFD) } == -1;
    (0..).filter(is_free).nth(count - 1).unwrap() as u64 + 1
}

#[test]
fn threads_without_a_descriptor_get_a_timer() {
    let _guard = serially();
    if !thread_clocks().contains(&ClockKind::Perf) {
        return;
    }
    assert_within(2.0, ClockKind::Perf, "and timers", || {
        // The application takes all descriptors once the session runs.
        let (measured, counts) = with_limit(Resource::RLIMIT_NOFILE, 2 * limit_with_room_for(3), || {
            eight_threads(ClockKind::Perf, open_all)
        });
        println!("{counts:?}");
        assert!(counts.fallback_to_timer >= 5, "{counts:?}");
        assert_eq!((counts.fallback_to_itimer, counts.threads_unsampled), (0, 0), "{counts:?}");
        measured
    });
}

/// Opens files until no descriptor is free.
fn open_all() -> Vec<fs::File> {
    std::iter::repeat_with(|| fs::File::open("/dev/null")).map_while(Result::ok).collect()
}

#[test]
fn the_application_keeps_half_of_its_descriptors_however_many_threads_it_has() {
    let _guard = serially();
    if !thread_clocks().contains(&ClockKind::Perf) {
        return;
    }
    // Room for the list of threads and a few events, but for far fewer events than there are threads.
    let half = limit_with_room_for(10);
    with_limit(Resource::RLIMIT_NOFILE, 2 * half, || {
        let upper_half = open_all().len() as u64 - 10;
        let counts = cpu::counts();
        let session = start(&config(ClockKind::Perf));
        let (born, done) = (Barrier::new(101), Barrier::new(101));
        let (opened, counts) = thread::scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|| {
                    born.wait();
                    done.wait();
                });
            }
            born.wait();
            let opened = open_all().len() as u64;
            done.wait();
            (opened, cpu::counts().since(&counts))
        });
        session.stop();
        assert!(opened >= upper_half && upper_half > 0, "{opened} of {upper_half}: {counts:?}");
        // The descriptors below are used.
        assert!(opened < upper_half + 10, "{opened} of {upper_half}: {counts:?}");
        assert!((90..=100).contains(&counts.fallback_to_timer), "{counts:?}");
        assert_eq!((counts.fallback_to_itimer, counts.threads_unsampled), (0, 0), "{counts:?}");
    });
}

#[test]
fn a_session_starts_or_says_why_in_a_line_at_any_limit_of_descriptors() {
    let _guard = serially();
    let mut results = BTreeSet::new();
    for limit in 0..2 * limit_with_room_for(10) {
        results.insert(with_limit(Resource::RLIMIT_NOFILE, limit, || {
            let config = otlpprof_sampling::config::Config { interval: INTERVAL, ..Default::default() };
            match cpu::start(&config) {
                Ok(session) => format!("runs by {}", session.clock().expect("a clock").name()),
                Err(error) => error.to_string(),
            }
        }));
    }
    println!("{results:?}");
    let (running, refused): (Vec<_>, Vec<_>) = results.iter().partition(|result| result.starts_with("runs"));
    assert!(running.iter().any(|result| *result == "runs by timer"), "{results:?}");
    let error = io::Error::from_raw_os_error(libc::EMFILE);
    assert_eq!(refused, [&format!("CPU sampling: the list of threads cannot be opened: {error}")]);
}

#[test]
fn threads_without_a_timer_share_the_process_timer() {
    let _guard = serially();
    // Eight threads of 0.3 s, of which OPEN is 2 %. The process timer's signals go to whichever thread a tick
    // interrupts, and some of them are credited to the thread that waits.
    assert_within(3.0, ClockKind::Itimer, "shared", share_the_process_timer);
}

fn share_the_process_timer() -> Measured {
    // The limit counts the pending signals of all the user's processes. The number left is unknown, so the
    // limit is set to leave none.
    let (measured, counts) = with_limit(Resource::RLIMIT_SIGPENDING, 1, || {
        // The check at the start of a session needs a timer.
        let one = with_limit(Resource::RLIMIT_SIGPENDING, 1 << 16, || start(&config(ClockKind::Timer)));
        let counts = cpu::counts();
        let before = program_cpu();
        let mut filler = Vec::new();
        while let Some(timer) = spare_timer() {
            filler.push(timer);
        }
        let threads: Vec<_> = (0..8).map(|_| thread::spawn(|| burn(Duration::from_millis(300)))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let used = settle_program(before);
        one.stop();
        // SAFETY: the timers were created above and are deleted once.
        filler.into_iter().for_each(|timer| unsafe { assert_eq!(libc::timer_delete(timer), 0) });
        (Measured { sampled: sampled(), used }, cpu::counts().since(&counts))
    });
    assert!(counts.fallback_to_itimer >= 8, "{counts:?}");
    assert_eq!(counts.threads_unsampled, 0, "{counts:?}");
    measured
}

#[test]
fn a_thread_that_can_have_no_clock_is_counted_once_and_sampled_when_there_is_one() {
    const NOT_SAMPLED: &str = "threads are not sampled";
    let _guard = serially();
    keep_warnings();
    with_limit(Resource::RLIMIT_SIGPENDING, 1, || {
        let session = with_limit(Resource::RLIMIT_SIGPENDING, 1 << 16, || start(&config(ClockKind::Timer)));
        // The application uses the process timer and all other timers. They would fire after a thousand
        // seconds.
        let set_itimer = |seconds| {
            let time = libc::timeval { tv_sec: seconds, tv_usec: 0 };
            let setting = libc::itimerval { it_interval: time, it_value: time };
            // SAFETY: the kernel reads `setting`, and a null old value is allowed.
            assert_eq!(unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const setting, ptr::null_mut()) }, 0);
        };
        set_itimer(1_000);
        let filler: Vec<_> = std::iter::repeat_with(spare_timer).map_while(|timer| timer).collect();
        let before = cpu::counts();
        let done = AtomicBool::new(false);
        // Nothing is asserted while threads run for which a failure would wait, nor before the limits are
        // restored for other tests.
        let (first, second) = thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        burn(Duration::from_millis(2));
                    }
                });
            }
            let give_up = Instant::now() + PATIENCE;
            while cpu::counts().since(&before).threads_unsampled < 8 && Instant::now() < give_up {
                thread::sleep(Duration::from_millis(50));
            }
            // The harness may create a thread meanwhile.
            thread::sleep(Duration::from_millis(700));
            let first = cpu::counts().since(&before);
            // Long enough for many rounds of the poller.
            thread::sleep(Duration::from_millis(1_000));
            while warnings_with(NOT_SAMPLED).is_empty() && Instant::now() < give_up {
                thread::sleep(Duration::from_millis(50));
            }
            let second = cpu::counts().since(&before);
            // SAFETY: the timers were created above and are deleted once.
            filler.into_iter().for_each(|timer| unsafe { assert_eq!(libc::timer_delete(timer), 0) });
            with_limit(Resource::RLIMIT_SIGPENDING, 1 << 16, || {
                let give_up = Instant::now() + PATIENCE;
                while cpu::counts().since(&before).threads_armed < 8 && Instant::now() < give_up {
                    thread::sleep(Duration::from_millis(50));
                }
            });
            done.store(true, Ordering::Relaxed);
            (first, second)
        });
        let last = cpu::counts().since(&before);
        set_itimer(0);
        session.stop();
        // The harness may have created a thread that waits for its turn.
        assert!(first.threads_unsampled >= 8 && first.threads_armed == 0, "{first:?}");
        assert_eq!((first.fallback_to_timer, first.fallback_to_itimer), (0, 0), "{first:?}");
        assert_eq!(second.threads_unsampled, first.threads_unsampled, "{second:?}");
        assert_eq!(last.threads_unsampled, first.threads_unsampled, "{last:?}");
        assert!(last.threads_armed >= 8, "{last:?}");
    });
    assert_eq!(warnings_with(NOT_SAMPLED).len(), 1);
}

/// A timer that is never set; `None` if none can be created.
fn spare_timer() -> Option<libc::timer_t> {
    // SAFETY: an all-zero sigevent is valid, and the call writes the timer's id.
    unsafe {
        let mut event: libc::sigevent = mem::zeroed();
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = libc::SIGURG;
        let mut timer = ptr::null_mut();
        (libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) == 0).then_some(timer)
    }
}

#[test]
fn a_clock_that_is_not_granted_is_refused_by_name() {
    let _guard = serially();
    with_limit(Resource::RLIMIT_NOFILE, 0, || {
        let error = cpu::start(&config(ClockKind::Perf)).err().unwrap();
        assert!(error.to_string().starts_with("cpu.clock=perf is not available ("), "{error}");
    });
    // Nothing remains of the failed attempt.
    start(&config(ClockKind::Timer)).stop();
}

#[test]
fn the_choice_of_a_clock_comes_with_its_reason() {
    let _guard = serially();
    let granted = thread_clocks().contains(&ClockKind::Perf);
    let session = start(&otlpprof_sampling::config::Config { interval: INTERVAL, ..Default::default() });
    let (clock, reason) = (session.clock().expect("a clock"), session.clock_reason().to_owned());
    session.stop();
    if granted {
        assert_eq!(clock, ClockKind::Perf);
        assert_eq!(reason, "perf events are granted, the kernel's time included");
    } else {
        assert_eq!(clock, ClockKind::Timer);
        assert!(reason.starts_with("perf events are not granted: "), "{reason}");
    }
}
