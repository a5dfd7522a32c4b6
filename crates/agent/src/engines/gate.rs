//! Lets samples through while an engine runs. When the engine stops, waits for the samples under way.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use otlpprof_jvm::jvmti::Jvmti;
use otlpprof_jvm::jvmti_error::JvmtiError;
use otlpprof_jvm::jvmti_events::JvmtiEvent;

/// Set while the engine runs. The lower bits are the number of threads inside.
const OPEN: u64 = 1 << 63;

/// The time that [`Gate::close`] waits for threads inside. Such a thread waits for the VM at most, for one
/// safepoint.
const PATIENCE: Duration = Duration::from_secs(1);

/// An engine's gate.
#[derive(Debug)]
pub(super) struct Gate(AtomicU64);

/// A thread inside the gate. Dropping this value leaves the gate.
#[derive(Debug)]
pub(super) struct Inside<'a>(&'a AtomicU64);

impl Gate {
    /// A closed gate.
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Lets samples through.
    pub(super) fn open(&self) {
        self.0.fetch_or(OPEN, Ordering::SeqCst);
    }

    /// Opens the gate and enables the events that lead to it. If the VM refuses one, all are disabled and the
    /// gate is closed.
    pub(super) fn open_to(&self, jvmti: Jvmti, events: &[JvmtiEvent]) -> Result<(), JvmtiError> {
        self.open();
        let enabled = events.iter().try_for_each(|event| jvmti.set_event_enabled(*event, true));
        enabled.inspect_err(|_| self.close_to(jvmti, events))
    }

    /// Undoes [`Gate::open_to`], if the gate is open.
    pub(super) fn close_to(&self, jvmti: Jvmti, events: &[JvmtiEvent]) {
        if self.0.load(Ordering::SeqCst) & OPEN == 0 {
            return;
        }
        for event in events {
            // Should the event still arrive, the closed gate stops it.
            let _ = jvmti.set_event_enabled(*event, false);
        }
        self.close();
    }

    /// Whether the gate is open now.
    pub(super) fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed) & OPEN != 0
    }

    /// Enters the gate, if it is open.
    pub(super) fn enter(&self) -> Option<Inside<'_>> {
        let inside = Inside(&self.0);
        (self.0.fetch_add(1, Ordering::SeqCst) & OPEN != 0).then_some(inside)
    }

    /// Closes the gate, and waits until no thread is inside, for at most [`PATIENCE`].
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
    fn a_closed_gate_has_no_thread_inside() {
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
