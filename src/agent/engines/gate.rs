//! Lets samples through while an engine runs, and waits for those under way when it stops.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::jvm::jvmti::Jvmti;
use crate::jvm::jvmti_error::JvmtiError;
use crate::jvm::jvmti_events::Event;

/// Set while the engine runs; below it is the number of threads inside.
const OPEN: u64 = 1 << 63;

/// How long a stop waits for a thread inside. It waits for the VM at most, for one safepoint.
const PATIENCE: Duration = Duration::from_secs(1);

/// An engine's gate.
#[derive(Debug)]
pub(super) struct Gate(AtomicU64);

/// A thread inside; it leaves when this is dropped.
#[derive(Debug)]
pub(super) struct Inside<'a>(&'a AtomicU64);

impl Gate {
    /// A closed one.
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Lets samples through.
    pub(super) fn open(&self) {
        self.0.fetch_or(OPEN, Ordering::SeqCst);
    }

    /// Opens the gate and has the VM send the events that lead to it; all or none.
    pub(super) fn open_to(&self, jvmti: Jvmti, events: &[Event]) -> Result<(), JvmtiError> {
        self.open();
        let told = events.iter().try_for_each(|event| jvmti.set_event_enabled(*event, true));
        told.inspect_err(|_| self.close_to(jvmti, events))
    }

    /// Undoes [`Gate::open_to`], if the gate is open.
    pub(super) fn close_to(&self, jvmti: Jvmti, events: &[Event]) {
        if self.0.load(Ordering::SeqCst) & OPEN == 0 {
            return;
        }
        for event in events {
            // What is still sent is not let in.
            let _ = jvmti.set_event_enabled(*event, false);
        }
        self.close();
    }

    /// Whether it is open now.
    pub(super) fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed) & OPEN != 0
    }

    /// Goes inside, if the gate is open.
    pub(super) fn enter(&self) -> Option<Inside<'_>> {
        let inside = Inside(&self.0);
        (self.0.fetch_add(1, Ordering::SeqCst) & OPEN != 0).then_some(inside)
    }

    /// Closes the gate, and waits until nobody is inside.
    pub(super) fn close(&self) {
        self.0.fetch_and(!OPEN, Ordering::SeqCst);
        let since = Instant::now();
        while self.0.load(Ordering::SeqCst) != 0 && since.elapsed() < PATIENCE {
            thread::yield_now();
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn nobody_is_inside_a_closed_gate() {
        let gate = Gate::new();
        assert!(gate.enter().is_none());
        gate.open();
        let (is_inside, has_left) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let inside = gate.enter().unwrap();
                is_inside.store(true, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(30));
                has_left.store(true, Ordering::SeqCst);
                drop(inside);
            });
            while !is_inside.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            gate.close();
            assert!(has_left.load(Ordering::SeqCst));
        });
        assert!(gate.enter().is_none());
        gate.open();
        assert!(gate.enter().is_some());
    }
}
