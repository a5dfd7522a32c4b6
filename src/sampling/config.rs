//! What can be chosen about CPU sampling.

use std::time::Duration;

use crate::core::thread::ClockKind;

/// Which clock to sample threads by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockChoice {
    /// Perf events if they are granted with the kernel's time included, else timers.
    #[default]
    Auto,
    /// This clock, and none in its place at the start. Threads for which the process's limits leave none of it
    /// still get the next kind.
    Only(ClockKind),
    /// None: threads are known, and none is sampled by its CPU time.
    None,
}

/// CPU sampling, as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// CPU time between two samples of a thread: [`Config::SHORTEST_INTERVAL`] to [`Config::LONGEST_INTERVAL`].
    pub interval: Duration,
    /// The clock.
    pub clock: ClockChoice,
    /// The signal by which a thread is told. See [`Config::allows_signal`].
    pub signal: i32,
    /// Whether the kernel's frames are on top of stacks: by [`ClockKind::Perf`], if the process may have them.
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
    /// Shorter intervals would leave a thread no time between two signals, whose path through the kernel takes
    /// some 20 µs.
    pub const SHORTEST_INTERVAL: Duration = Duration::from_micros(50);

    /// Longer ones are no sampling.
    pub const LONGEST_INTERVAL: Duration = Duration::from_secs(3600);

    /// The signals with names that a profiler may have, without SIG: not those that HotSpot needs for itself (its
    /// faults, SIGQUIT for thread dumps, SIGHUP, SIGINT and SIGTERM for shutdown, SIGUSR2 for suspension, SIGPIPE and
    /// SIGXFSZ, which it ignores), nor SIGCHLD and those of terminals, job control and the limit of CPU time.
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

    /// Whether the interval is one that can be kept.
    pub fn allows_interval(interval: Duration) -> bool {
        (Self::SHORTEST_INTERVAL..=Self::LONGEST_INTERVAL).contains(&interval)
    }

    /// Whether a profiler may have the signal: one of [`Config::NAMED_SIGNALS`], or a real-time one that the C
    /// library does not keep for itself.
    pub fn allows_signal(signal: i32) -> bool {
        Self::NAMED_SIGNALS.iter().any(|(_, named)| *named == signal)
            || (libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&signal)
    }
}

/// What arming a thread takes.
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
    fn signals_that_the_vm_lives_by_are_refused() {
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
