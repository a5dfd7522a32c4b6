//! The number of times that the wall-clock sampler interrupts waiting threads.

use std::collections::HashMap;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use otlpprof_core::engine::Engine;
use otlpprof_sampling::config::{ClockChoice, Config};
use otlpprof_sampling::wall::{self, WallConfig};
use otlpprof_testkit::sampling_session::*;
use parking_lot::Mutex;

const WALL: WallConfig = WallConfig {
    interval: Duration::from_millis(10),
    signal: libc::SIGVTALRM,
    longest_round: Duration::from_secs(1),
};
const THREADS: usize = 16;
/// By thread id modulo the array's length: the number of samples taken, and the number of the last one.
static TAKEN: [(AtomicU32, AtomicU32); 1 << 16] = [const { (AtomicU32::new(0), AtomicU32::new(0)) }; 1 << 16];

fn taken(tid: i32) -> &'static (AtomicU32, AtomicU32) {
    &TAKEN[tid as usize % TAKEN.len()]
}

fn note_taken() {
    drain(|header| {
        assert_eq!(header.engine, Engine::Wall);
        let (count, last) = taken(header.os_tid);
        count.fetch_add(1, Ordering::Relaxed);
        last.fetch_max(header.number, Ordering::Relaxed);
    });
}

/// Waits for the pipe's other end to be closed. Returns the number of interruptions.
fn poll_to_the_end(pipe: &impl AsRawFd) -> u32 {
    let mut interruptions = 0;
    loop {
        let mut wanted = libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the pointer refers to one live pollfd, as the count says.
        if unsafe { libc::poll(&raw mut wanted, 1, -1) } >= 0 {
            return interruptions;
        }
        assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::EINTR));
        interruptions += 1;
    }
}

/// Regression: a thread that began to wait was interrupted a second time, to check whether it still waits. A
/// thread may be interrupted again by chance if it takes long to return to waiting. So the test passes if one
/// thread is not.
#[test]
fn a_thread_that_waits_where_it_was_found_is_not_interrupted_again() {
    let _guard = serially();
    let config = Config { clock: ClockChoice::None, ..Config::default() };
    let deadline = Instant::now() + PATIENCE;
    let session = start(&config);
    loop {
        drain(|_| ());
        for (count, last) in &TAKEN {
            count.store(0, Ordering::Relaxed);
            last.store(0, Ordering::Relaxed);
        }
        let (waiting, end) = io::pipe().unwrap();
        let tids = Mutex::new(Vec::new());
        let found = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        tids.lock().push(gettid());
                        (gettid(), poll_to_the_end(&waiting))
                    })
                })
                .collect();
            while tids.lock().len() < THREADS {
                thread::sleep(Duration::from_millis(1));
            }
            let wall = wall::start(&WALL).unwrap();
            let mut repeated: HashMap<u32, u32> = HashMap::new();
            // Waits until all threads have been visited, and then for some further rounds.
            while tids.lock().iter().any(|tid| taken(*tid).0.load(Ordering::Relaxed) == 0)
                || repeated.values().sum::<u32>() < 20 * THREADS as u32 && Instant::now() < deadline
            {
                thread::sleep(Duration::from_millis(5));
                note_taken();
                for repeat in wall::take_repeats() {
                    *repeated.entry(repeat.number).or_default() += 1;
                }
            }
            drop(wall);
            note_taken();
            drop(end);
            let interruptions: HashMap<_, _> =
                threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            let is_left_alone = |tid: &i32| {
                let (count, last) = taken(*tid);
                count.load(Ordering::Relaxed) == 1
                    && interruptions[tid] <= 1
                    && repeated.contains_key(&last.load(Ordering::Relaxed))
            };
            tids.lock().iter().any(is_left_alone)
        });
        if found {
            break;
        }
        assert!(Instant::now() < deadline, "every thread that waits was interrupted at least twice");
    }
    session.stop();
}
