//! A thread of the profiler that performs a periodic task until it is stopped.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::forked_child::FORKED;
use super::own_threads;

/// The running thread. Dropping it stops the thread and joins it; not in a forked child, in which the thread
/// does not exist.
pub(super) struct StoppableThread {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

/// The request for the thread to end.
#[derive(Default)]
pub(super) struct Stop {
    is_wanted: Mutex<bool>,
    wake: Condvar,
}

impl StoppableThread {
    /// Starts the thread. `body` must return when [`Stop::is_stopped_within`] returns `true`.
    pub(super) fn start(name: &str, body: impl FnOnce(&Stop) + Send + 'static) -> io::Result<Self> {
        let stop = Arc::new(Stop::default());
        let thread = own_threads::spawn(name, {
            let stop = Arc::clone(&stop);
            move || body(&stop)
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Stop {
    /// Waits for at most `time`. Returns whether the thread is to end; a request to end wakes it at once.
    pub(super) fn is_stopped_within(&self, time: Duration) -> bool {
        let mut is_wanted = self.is_wanted.lock();
        if !*is_wanted {
            self.wake.wait_for(&mut is_wanted, time);
        }
        *is_wanted
    }
}

impl Drop for StoppableThread {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if FORKED.load(Ordering::Relaxed) {
            std::mem::forget(thread);
            return;
        }
        *self.stop.is_wanted.lock() = true;
        self.stop.wake.notify_one();
        let _ = thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn a_stoppable_thread_works_until_it_is_dropped_and_then_stops_at_once() {
        let rounds = Arc::new(AtomicU32::new(0));
        let counted = rounds.clone();
        let thread = StoppableThread::start("test", move |stop| {
            while !stop.is_stopped_within(Duration::from_millis(1)) {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            // The request ends the wait at once.
            assert!(stop.is_stopped_within(Duration::MAX));
        });
        let thread = thread.unwrap();
        while rounds.load(Ordering::Relaxed) < 3 {
            std::thread::yield_now();
        }
        drop(thread);
        let ended = rounds.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(10));
        assert_eq!(rounds.load(Ordering::Relaxed), ended);
    }
}
