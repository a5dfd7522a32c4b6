//! Waits for signal handlers that still use state that is about to be taken down.

use std::thread;
use std::time::{Duration, Instant};

/// The longest time that the end of a session waits for handlers.
const HANDLER_PATIENCE: Duration = Duration::from_secs(1);

/// One wait, for any number of handlers.
pub(super) struct HandlerWait {
    since: Instant,
}

impl HandlerWait {
    /// Starts the wait's clock.
    pub(super) fn new() -> Self {
        Self { since: Instant::now() }
    }

    /// Waits until the handler has finished. Returns `false` if it has not when the time is over.
    pub(super) fn for_handler(&self, is_busy: impl Fn() -> bool) -> bool {
        while is_busy() {
            if self.since.elapsed() > HANDLER_PATIENCE {
                return false;
            }
            thread::yield_now();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_handler_that_ends_is_waited_for_and_one_that_does_not_is_given_up() {
        let checks = Cell::new(0);
        let is_busy = || checks.replace(checks.get() + 1) < 3;
        assert!(HandlerWait::new().for_handler(is_busy));
        assert_eq!(checks.get(), 4);
        assert!(!HandlerWait::new().for_handler(|| true));
    }
}
