//! Signals that another handler of the process already uses.
//!
//! We could handle our own signals and pass on all others. But several pending signals of one number are
//! merged for a thread, and a profiler by perf events that misses a signal of its own may never get another.
//! So the engine stays off, and the user is notified.

use otlpprof_options::{CpuClock, Options};
use otlpprof_signal::delivery::is_held_by_another;

/// Turns off the engines whose signals have a handler of another agent or of the program, with a line in the
/// log for each.
pub(crate) fn turn_off(options: &mut Options) {
    let cpu_signal = match options.cpu_clock {
        // The signal of this clock cannot be chosen.
        CpuClock::Itimer => libc::SIGPROF,
        _ => options.signal,
    };
    turn_off_one(&mut options.cpu, "cpu", cpu_signal, "signal");
    turn_off_one(&mut options.wall, "wall", options.wall_signal, "wall.signal");
    turn_off_one(&mut options.event, "event", options.event_signal, "event.signal");
}

fn turn_off_one<T>(engine: &mut Option<T>, name: &str, signal: i32, option: &str) {
    if engine.is_some() && is_held_by_another(signal) {
        log::warn!(
            "{name} is off: another agent of this process, or the program, has a handler for signal \
             {signal}; `{option}` chooses another signal"
        );
        *engine = None;
    }
}
