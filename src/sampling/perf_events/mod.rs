//! Sampling by perf events: every thread has one of its own, which signals it each time that it has counted a period.
//!
//! In: an event, and the signal. Out: a function called in a signal handler on the thread that the event happened in
//! (`signal::event`). Threads are those that `sampling::cpu` knows: a session of this begins before one of that, so that a
//! thread has its event from its birth on, and ends before it.
//!
//! | Module | Duty |
//! |---|---|
//! | [`names`] | events by name |
//! | `attributes` | what is passed to the kernel for them |
//! | `refusal` | why one cannot be counted |

mod attributes;
pub mod names;
mod refusal;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use self::attributes::EventAttributes;
use self::names::EventSpec;
pub use self::refusal::Refusal;
use super::handler_wait::HandlerWait;
use super::handler_watch::{self, Watch, Watched};
use super::random::random;
use super::thread_records::for_each_thread;
use super::{KernelFrames, kernel_rings, perf_descriptor, threads};
use crate::core::thread::ThreadRecord;
use crate::signal::delivery::install_handler;
use crate::signal::event::{COUNTS, EventSampleFn, SESSION, SHORTEST_FIRST_PERIOD};
use crate::signal::thread_table::SignalToken;

/// What a thread's event is made of.
struct Armed {
    attributes: EventAttributes,
    period: u64,
    /// More than `period` where a signal has its event counted once more.
    extra: u64,
    signal: i32,
    /// Whether the kernel's frames are on top.
    kernel_frames: bool,
    has_failed: AtomicBool,
}

static ARMED: Mutex<Option<Arc<Armed>>> = Mutex::new(None);

/// A running session. Stops when dropped.
pub struct Session {
    _watched: Watched,
}

/// From now on threads are given this event as they become known. Without the kernel's frames, where they cannot be had.
///
/// # Errors
/// If the machine does not have it, or the process may not.
pub fn start(
    event: &EventSpec,
    kernel_frames: KernelFrames,
    signal: i32,
    sample: EventSampleFn,
) -> Result<Session, Refusal> {
    let mut attributes = EventAttributes::of(event)?;
    // Two at least: a signal for each time would wake a thread from its sleep each time that it goes to sleep.
    let extra = u64::from(event.may_wake());
    let kernel_period = event.period + extra;
    let opened = perf_descriptor::open(&attributes.with_period(kernel_period), 0);
    let opened = opened.map_err(|error| Refusal::by_kernel(event, &error, perf_descriptor::paranoia()))?;
    perf_descriptor::close(opened);
    install_handler(signal).map_err(Refusal::Handler)?;
    let kernel_frames = has_kernel_frames(event, kernel_frames, &attributes);
    if kernel_frames {
        attributes.ask_for_kernel_frames();
        kernel_rings::read_names_ahead();
    }
    SESSION.open(signal, event.period, kernel_period, extra != 0, sample);
    let has_failed = AtomicBool::new(false);
    let armed = Armed { attributes, period: event.period, extra, signal, kernel_frames, has_failed };
    *ARMED.lock() = Some(Arc::new(armed));
    log::debug!("sampling every {} of {}", event.period, event.name);
    let watched = handler_watch::begin(Watch {
        signal,
        samples: "samples by a perf event",
        option: "event.signal",
        replaced: &COUNTS.handler_replaced,
    });
    Ok(Session { _watched: watched })
}

/// Whether stacks of the event have the kernel's frames. If the user wants them, and they cannot be had, he is told so.
fn has_kernel_frames(event: &EventSpec, wanted: KernelFrames, attributes: &EventAttributes) -> bool {
    if wanted == KernelFrames::Off || event.user_only {
        return false;
    }
    let mut attributes = attributes.with_period(event.period);
    kernel_rings::ask_for(&mut attributes);
    let refusal = kernel_rings::check(|| perf_descriptor::open(&attributes, 0)).err();
    if let (KernelFrames::On, Some(refusal)) = (wanted, &refusal) {
        log::warn!("event.kernel: stacks of {} are without kernel frames: {refusal}", event.name);
    }
    refusal.is_none()
}

impl Drop for Session {
    fn drop(&mut self) {
        SESSION.close();
        if threads::FORKED.load(Ordering::Relaxed) {
            return;
        }
        *ARMED.lock() = None;
        let wait = HandlerWait::new();
        for_each_thread(|record| {
            wait.for_handler(|| record.event.busy.load(Ordering::SeqCst));
        });
    }
}

/// Gives a thread its event, if there is a session. The caller owns the record's clock.
pub(super) fn arm(record: &ThreadRecord) {
    let Some(armed) = ARMED.lock().clone() else { return };
    if let Err(error) = armed.arm(record) {
        // A thread that has ended meanwhile is none that is missed.
        if error.raw_os_error() == Some(libc::ESRCH) {
            return;
        }
        COUNTS.threads_unsampled.fetch_add(1, Ordering::Relaxed);
        if !armed.has_failed.swap(true, Ordering::Relaxed) {
            log::warn!("event: a thread is not sampled, and others may not be: {error}");
        }
    }
}

/// Takes the record's event down, if it has one. The caller owns the record's clock, and unmaps the event's ring when no
/// handler is at work with it.
pub(super) fn disarm(record: &ThreadRecord) {
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
        perf_descriptor::lead_to(descriptor, tid, self.signal, token, set).inspect_err(|_| {
            // The record may not have been told of it yet. It has not begun to count: there are no handlers.
            record.event.set_descriptor(None);
            perf_descriptor::close(descriptor);
            kernel_rings::take(&record.event.ring);
        })
    }
}
