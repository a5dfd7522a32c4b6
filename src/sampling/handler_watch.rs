//! Handlers that others install over ours while we sample: the poller looks for them.
//!
//! Ours is put before the other's once in a session, and passes on what is not ours. Who installs theirs again and again is
//! not to be outdone: the user is told on whom the engine's samples depend.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::threads;
use crate::signal::delivery::{handler_is_installed, install_handler};

/// An engine's signal.
#[derive(Clone, Copy)]
pub(super) struct Watch {
    pub(super) signal: i32,
    /// What depends on it, for the user: `CPU samples`.
    pub(super) samples: &'static str,
    /// The option that chooses another signal.
    pub(super) option: &'static str,
    /// Counts the handlers that were found in the place of ours.
    pub(super) replaced: &'static AtomicU64,
}

/// Ends when dropped.
pub(super) struct Watched(i32);

/// A signal, and what has happened to its handler since it is watched.
struct Watching {
    watch: Watch,
    is_ours: bool,
    was_put_back: bool,
}

static WATCHING: Mutex<Vec<Watching>> = Mutex::new(Vec::new());

/// From now on the poller looks whether the signal still comes to us first, which has just been seen to.
pub(super) fn begin(watch: Watch) -> Watched {
    WATCHING.lock().push(Watching { watch, is_ours: true, was_put_back: false });
    Watched(watch.signal)
}

impl Drop for Watched {
    fn drop(&mut self) {
        // In a forked child the lock may be held for ever.
        if !threads::FORKED.load(Ordering::Relaxed) {
            WATCHING.lock().retain(|watching| watching.watch.signal != self.0);
        }
    }
}

/// Looks at all signals that are watched.
pub(super) fn look() {
    WATCHING.lock().iter_mut().for_each(Watching::look);
}

impl Watching {
    fn look(&mut self) {
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
                "another handler was installed for signal {signal}: ours is before it again, and passes on what is not ours"
            );
        } else {
            log::warn!(
                "another handler was installed for signal {signal}: {samples} depend on it now (`{option}` chooses another \
                 signal)"
            );
        }
    }
}
