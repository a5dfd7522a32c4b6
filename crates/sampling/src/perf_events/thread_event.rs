//! The event of one thread: opens and closes it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use otlpprof_core::engine::Engine;
use otlpprof_core::thread::ThreadRecord;
use otlpprof_signal::event::{COUNTS, SHORTEST_FIRST_PERIOD};
use otlpprof_signal::thread_table::SignalToken;
use parking_lot::Mutex;

use super::attributes::EventAttributes;
use crate::random::random;
use crate::{kernel_rings, perf_descriptor, refusals};

/// The parameters of a thread's event.
pub(super) struct Armed {
    pub(super) attributes: EventAttributes,
    pub(super) period: u64,
    /// The number of additional counts in each of the kernel's periods: 1 if a signal can cause the event to
    /// be counted once more, else 0.
    pub(super) extra: u64,
    pub(super) signal: i32,
    /// Whether stacks have the kernel's frames on top.
    pub(super) kernel_frames: bool,
    pub(super) has_failed: AtomicBool,
}

/// The event of each thread in the running session.
pub(super) static ARMED: Mutex<Option<Arc<Armed>>> = Mutex::new(None);

/// Opens a thread's event, if there is a session. The caller owns the record's clock.
pub(crate) fn arm(record: &ThreadRecord) {
    let Some(armed) = ARMED.lock().clone() else { return };
    if let Err(error) = armed.arm(record) {
        // A thread that has ended meanwhile needs no event.
        if error.raw_os_error() == Some(libc::ESRCH) {
            return;
        }
        COUNTS.threads_unsampled.fetch_add(1, Ordering::Relaxed);
        refusals::note(Engine::Event, || format!("the system refuses threads their events ({error})"));
        if !armed.has_failed.swap(true, Ordering::Relaxed) {
            log::warn!("event: a thread is not sampled, and others may not be: {error}");
        }
    }
}

/// Closes the record's event, if it has one. The caller owns the record's clock, and unmaps the event's ring
/// when no handler is using it.
pub(crate) fn disarm(record: &ThreadRecord) {
    if let Some(descriptor) = record.event.descriptor() {
        record.event.set_descriptor(None);
        perf_descriptor::close(descriptor);
    }
}

impl Armed {
    fn arm(&self, record: &ThreadRecord) -> io::Result<()> {
        let phase = random() % self.period;
        record.event.begin(phase);
        let shortest = SHORTEST_FIRST_PERIOD.min(self.period);
        let first = (self.period - phase).max(shortest) + self.extra;
        let tid = record.os_tid.load(Ordering::Relaxed);
        let descriptor = perf_descriptor::open(&self.attributes.with_period(first), tid)?;
        if self.kernel_frames {
            kernel_rings::give(descriptor, &record.event.ring);
        }
        let set = || record.event.set_descriptor(Some(descriptor));
        let token = SignalToken::of(record);
        perf_descriptor::start_signals(descriptor, tid, self.signal, token, set).inspect_err(|_| {
            // The descriptor may not have been stored in the record yet. The event has not begun to count, so
            // no handler is running.
            record.event.set_descriptor(None);
            perf_descriptor::close(descriptor);
            kernel_rings::take(&record.event.ring);
        })
    }
}
