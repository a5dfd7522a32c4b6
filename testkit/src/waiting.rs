//! Waits for what other threads and processes do.

use std::thread;
use std::time::{Duration, Instant};

/// A wait of this length is taken to last for ever. It ends before the runner of the tests ends the test.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// Waits until a condition holds.
///
/// # Panics
/// If the condition does not hold within [`PATIENCE`].
#[track_caller]
pub fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "no {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
