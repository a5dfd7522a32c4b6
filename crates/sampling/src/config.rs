//! The configuration of CPU sampling.

use std::time::Duration;

use otlpprof_core::thread::ClockKind;

/// The choice of the clock by which threads are sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockChoice {
    /// Perf events if they are permitted with time in the kernel included, otherwise timers.
    #[default]
    Auto,
    /// This clock. If it is not available at the start, no other clock is used in its place. Threads for
    /// which the process's limits leave none of these clocks still get one of the next kind.
    Only(ClockKind),
    /// No clock: threads are known, and none is sampled by its CPU time.
    None,
}

/// The configuration of CPU sampling, as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The CPU time between two samples of a thread: [`Config::SHORTEST_INTERVAL`] to
    /// [`Config::LONGEST_INTERVAL`].
    pub interval: Duration,
    /// The clock.
    pub clock: ClockChoice,
    /// The signal that is sent to a thread. See [`Config::allows_signal`].
    pub signal: i32,
    /// Whether stacks have the kernel's frames on top: only with [`ClockKind::Perf`], if the process is
    /// permitted to read them.
    pub kernel_frames: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(10),
            clock: ClockChoice::Auto,
            signal: libc::SIGPROF,
            kernel_frames: false,
        }
    }
}

impl Config {
    /// The shortest interval. A shorter one would leave a thread no time between two signals, whose path
    /// through the kernel takes some 20 µs.
    pub const SHORTEST_INTERVAL: Duration = Duration::from_micros(50);

    /// The longest interval. With a longer one there would be hardly any samples.
    pub const LONGEST_INTERVAL: Duration = Duration::from_secs(3600);

    /// The named signals that a profiler may use, without the prefix SIG. HotSpot needs some signals for
    /// itself (its faults, SIGQUIT for thread dumps, SIGHUP, SIGINT and SIGTERM for shutdown, SIGUSR2 for
    /// suspension, SIGPIPE and SIGXFSZ, which it ignores). SIGCHLD and the signals of terminals, job control
    /// and the limit of CPU time are also excluded.
    pub const NAMED_SIGNALS: [(&str, i32); 8] = [
        ("PROF", libc::SIGPROF),
        ("VTALRM", libc::SIGVTALRM),
        ("ALRM", libc::SIGALRM),
        ("USR1", libc::SIGUSR1),
        ("URG", libc::SIGURG),
        ("IO", libc::SIGIO),
        ("PWR", libc::SIGPWR),
        ("STKFLT", libc::SIGSTKFLT),
    ];

    /// Whether the interval is within the bounds.
    pub fn allows_interval(interval: Duration) -> bool {
        (Self::SHORTEST_INTERVAL..=Self::LONGEST_INTERVAL).contains(&interval)
    }

    /// Whether a profiler may use the signal: one of [`Config::NAMED_SIGNALS`], or a real-time signal that
    /// the C library does not reserve for itself.
    pub fn allows_signal(signal: i32) -> bool {
        Self::NAMED_SIGNALS.iter().any(|(_, named)| *named == signal)
            || (libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&signal)
    }
}

/// The parameters for arming a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArmedConfig {
    pub(super) clock: Option<ClockKind>,
    pub(super) signal: i32,
    pub(super) kernel_frames: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_the_vm_needs_are_refused() {
        for signal in
            [libc::SIGSEGV, libc::SIGUSR2, libc::SIGQUIT, libc::SIGKILL, libc::SIGCHLD, 0, -1, 32, 99]
        {
            assert!(!Config::allows_signal(signal), "{signal}");
        }
        for signal in [libc::SIGPROF, libc::SIGVTALRM, libc::SIGRTMIN(), libc::SIGRTMAX()] {
            assert!(Config::allows_signal(signal), "{signal}");
        }
    }
}
