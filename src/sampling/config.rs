//! What can be chosen about CPU sampling.

use std::str::FromStr;
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
}

impl FromStr for ClockChoice {
    type Err = ();

    /// The option's values: `auto`, `perf`, `timer`, `itimer`.
    fn from_str(name: &str) -> Result<Self, ()> {
        if name == "auto" {
            return Ok(Self::Auto);
        }
        let kinds = [ClockKind::Perf, ClockKind::Timer, ClockKind::Itimer];
        kinds.into_iter().find(|kind| kind.name() == name).map(Self::Only).ok_or(())
    }
}

/// CPU sampling, as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// CPU time between two samples of a thread: [`Config::SHORTEST_INTERVAL`] to an hour.
    pub interval: Duration,
    /// The clock.
    pub clock: ClockChoice,
    /// The signal by which a thread is told. See [`Config::allows_signal`].
    pub signal: i32,
}

impl Default for Config {
    fn default() -> Self {
        Self { interval: Duration::from_millis(10), clock: ClockChoice::Auto, signal: libc::SIGPROF }
    }
}

impl Config {
    /// Shorter intervals would leave a thread no time between two signals, whose path through the kernel takes
    /// some 20 µs.
    pub const SHORTEST_INTERVAL: Duration = Duration::from_micros(50);

    const LONGEST_INTERVAL: Duration = Duration::from_secs(3600);

    /// Whether the interval is one that can be kept.
    pub fn allows_interval(interval: Duration) -> bool {
        (Self::SHORTEST_INTERVAL..=Self::LONGEST_INTERVAL).contains(&interval)
    }

    /// Whether a profiler may have the signal: not those that HotSpot needs for itself (its faults, SIGQUIT for
    /// thread dumps, SIGHUP, SIGINT and SIGTERM for shutdown, SIGUSR2 for suspension, SIGPIPE and SIGXFSZ, which
    /// it ignores), nor SIGCHLD and those of job control.
    pub fn allows_signal(signal: i32) -> bool {
        let ordinary = [
            libc::SIGPROF,
            libc::SIGVTALRM,
            libc::SIGALRM,
            libc::SIGUSR1,
            libc::SIGURG,
            libc::SIGIO,
            libc::SIGPWR,
            libc::SIGSTKFLT,
        ];
        ordinary.contains(&signal) || (libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&signal)
    }
}

/// What arming a thread takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArmedConfig {
    pub(super) clock: ClockKind,
    pub(super) signal: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_called_by_their_options_names() {
        assert_eq!("auto".parse(), Ok(ClockChoice::Auto));
        for kind in [ClockKind::Perf, ClockKind::Timer, ClockKind::Itimer] {
            assert_eq!(kind.name().parse(), Ok(ClockChoice::Only(kind)));
        }
        for bad in ["", "Auto", "perf ", "ctimer"] {
            assert_eq!(bad.parse::<ClockChoice>(), Err(()));
        }
    }

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
