//! Sampling by perf events: every thread has an event of its own, which signals the thread each time it has
//! counted a period.
//!
//! Input: an event, and the signal. Output: calls of a function in a signal handler on the thread that caused
//! the event (`signal::event`). Threads are those that `sampling::cpu` knows. A session of this module begins
//! before one of that module, so that a thread has its event from its start on, and ends before it.
//!
//! | Module | Duty |
//! |---|---|
//! | [`names`] | events by name |
//! | `attributes` | the attributes that are passed to the kernel |
//! | `refusal` | the reasons why an event cannot be counted |

mod attributes;
pub mod names;
mod refusal;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use otlpprof_core::engine::Engine;
use otlpprof_core::thread::ThreadRecord;
use otlpprof_signal::delivery::install_handler;
use otlpprof_signal::event::{COUNTS, EventSampleFn, SESSION, SHORTEST_FIRST_PERIOD};
use otlpprof_signal::thread_table::SignalToken;
use parking_lot::Mutex;

use self::attributes::EventAttributes;
use self::names::EventSpec;
pub use self::refusal::Refusal;
use super::handler_wait::HandlerWait;
use super::handler_watch::{self, Watch, WatchGuard};
use super::random::random;
use super::thread_records::for_each_thread;
use super::{KernelFrames, kernel_rings, perf_descriptor, refusals, threads};

/// The parameters of a thread's event.
struct Armed {
    attributes: EventAttributes,
    period: u64,
    /// The number of additional counts in each of the kernel's periods: 1 if a signal can cause the event to
    /// be counted once more, else 0.
    extra: u64,
    signal: i32,
    /// Whether stacks have the kernel's frames on top.
    kernel_frames: bool,
    has_failed: AtomicBool,
}

static ARMED: Mutex<Option<Arc<Armed>>> = Mutex::new(None);

/// A running session. Stops when dropped.
pub struct EventSampling {
    _watched: WatchGuard,
}

/// Starts a session: from now on each thread is given this event. Stacks are without kernel frames where
/// these are not available.
///
/// # Errors
/// If the machine does not support the event, or the process is not permitted to count it.
pub fn start(
    event: &EventSpec,
    kernel_frames: KernelFrames,
    signal: i32,
    sample: EventSampleFn,
) -> Result<EventSampling, Refusal> {
    let mut attributes = EventAttributes::of(event)?;
    // At least two counts for each signal: with a signal for each count, a thread would be woken each time it
    // goes to sleep.
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
    Ok(EventSampling { _watched: watched })
}

/// Whether stacks of the event have the kernel's frames. If the user asks for them and they are not
/// available, the reason is logged.
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

impl Drop for EventSampling {
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

/// Opens a thread's event, if there is a session. The caller owns the record's clock.
pub(super) fn arm(record: &ThreadRecord) {
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
        perf_descriptor::start_signals(descriptor, tid, self.signal, token, set).inspect_err(|_| {
            // The descriptor may not have been stored in the record yet. The event has not begun to count, so
            // no handler is running.
            record.event.set_descriptor(None);
            perf_descriptor::close(descriptor);
            kernel_rings::take(&record.event.ring);
        })
    }
}
