//! Sampling by perf events: every thread has an event of its own, which signals the thread each time it has
//! counted a period.
//!
//! Input: an event, and the signal. Output: calls of a function in a signal handler on the thread that caused
//! the event (`signal::event`). The threads are the threads that `sampling::cpu` knows. A session of this
//! module begins before one of that module, so that a thread has its event from its start on, and ends before
//! it.
//!
//! | Module | Duty |
//! |---|---|
//! | [`names`] | events by name |
//! | `attributes` | the attributes that are passed to the kernel |
//! | `thread_event` | the event of one thread: opens and closes it |
//! | `refusal` | the reasons why an event cannot be counted |

mod attributes;
pub mod names;
mod refusal;
pub(crate) mod thread_event;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use otlpprof_signal::delivery::install_handler;
use otlpprof_signal::event::{COUNTS, SESSION};

use self::attributes::EventAttributes;
use self::names::EventSpec;
pub use self::refusal::Refusal;
use self::thread_event::{ARMED, Armed};
use super::forked_child::FORKED;
use super::handler_wait::HandlerWait;
use super::handler_watch::{self, Watch, WatchGuard};
use super::kernel_rings::{self, KernelFrames};
use super::thread_records::for_each_thread;
use super::{kernel_names, perf_descriptor};

/// A running session. Stops when dropped.
pub struct EventSampling {
    _watched: WatchGuard,
}

/// Starts a session: from now on each thread is given this event. Stacks are without kernel frames where
/// these are not available.
///
/// # Errors
/// If the machine does not support the event, or the process is not permitted to count it.
pub fn start(event: &EventSpec, kernel_frames: KernelFrames, signal: i32) -> Result<EventSampling, Refusal> {
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
        kernel_names::read_ahead();
    }
    SESSION.open(signal, event.period, kernel_period, extra != 0);
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
        if FORKED.load(Ordering::Relaxed) {
            return;
        }
        *ARMED.lock() = None;
        let wait = HandlerWait::new();
        for_each_thread(|record| {
            wait.for_handler(|| record.event.busy.load(Ordering::SeqCst));
        });
    }
}
