//! Signals that another handler of the process already uses.
//!
//! We could handle our own signals and pass on all others. But several pending signals of one number are
//! merged for a thread, and a profiler by perf events that misses a signal of its own may never get another.
//! So the engine stays off, and the user is notified.

use otlpprof_options::Options;
use otlpprof_signal::delivery::is_held_by_another;

use super::table::{description, enabled};

/// Turns off the engines whose signals have a handler of another agent or of the program, with a line in the
/// log for each.
pub(crate) fn turn_off(options: &mut Options) {
    let engines: Vec<_> = enabled(options).collect();
    for engine in engines {
        let Some(signal) = (description(engine).signal)(options) else { continue };
        if is_held_by_another(signal.number) {
            log::warn!(
                "{} is off: another agent of this process, or the program, has a handler for signal {}; \
                 `{}` chooses another signal",
                engine.name(),
                signal.number,
                signal.option
            );
            (description(engine).turn_off)(options);
        }
    }
}
