//! Detects foreign handlers that are installed over ours during a session, by the poller.
//!
//! Our handler is put first again once in a session, and forwards foreign signals. If other code installs its
//! handler again and again, that handler is left in place, and the user is warned that the engine's samples
//! depend on it.

use std::sync::atomic::{AtomicU64, Ordering};

use otlpprof_signal::delivery::{handler_is_installed, install_handler};
use parking_lot::Mutex;

use super::forked_child::FORKED;

/// An engine's signal.
#[derive(Clone, Copy)]
pub(super) struct Watch {
    pub(super) signal: i32,
    /// The samples that depend on the signal, for messages: `CPU samples`.
    pub(super) samples: &'static str,
    /// The option that chooses another signal.
    pub(super) option: &'static str,
    /// Counts foreign handlers that were found in place of ours.
    pub(super) replaced: &'static AtomicU64,
}

/// Ends the watch when dropped.
pub(super) struct WatchGuard(i32);

/// A watched signal, and the state of its handler.
struct WatchedSignal {
    watch: Watch,
    is_ours: bool,
    was_put_back: bool,
}

static WATCHING: Mutex<Vec<WatchedSignal>> = Mutex::new(Vec::new());

/// Watches from now on whether the signal is still delivered to us first. The caller has just installed our
/// handler.
pub(super) fn begin(watch: Watch) -> WatchGuard {
    WATCHING.lock().push(WatchedSignal { watch, is_ours: true, was_put_back: false });
    WatchGuard(watch.signal)
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        // In a forked child the lock may be held for ever.
        if !FORKED.load(Ordering::Relaxed) {
            WATCHING.lock().retain(|watching| watching.watch.signal != self.0);
        }
    }
}

/// Checks all watched signals.
pub(super) fn check() {
    WATCHING.lock().iter_mut().for_each(WatchedSignal::check);
}

impl WatchedSignal {
    fn check(&mut self) {
        let was_ours = self.is_ours;
        self.is_ours = handler_is_installed(self.watch.signal);
        if self.is_ours || !was_ours {
            return;
        }
        let Watch { signal, samples, option, replaced } = self.watch;
        replaced.fetch_add(1, Ordering::Relaxed);
        self.is_ours = !std::mem::replace(&mut self.was_put_back, true) && install_handler(signal).is_ok();
        if self.is_ours {
            log::warn!(
                "another handler was installed for signal {signal}: the agent's handler precedes it again, \
                 and passes foreign signals on"
            );
        } else {
            log::warn!(
                "another handler was installed for signal {signal}: {samples} now depend on that handler \
                 (`{option}` chooses another signal)"
            );
        }
    }
}
