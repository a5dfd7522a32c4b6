//! Programs that heed the signals which a shell sends, however the tests were started.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Makes a program start with the default actions of SIGHUP, SIGINT and SIGQUIT. Tests ignore SIGHUP under
/// nohup, and SIGINT and SIGQUIT in the background of a shell. A shell cannot trap a signal that it was
/// started to ignore.
pub fn heed_signals(command: &mut Command) {
    let heed = || {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
            // SAFETY: signal is async-signal-safe.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: the closure makes only system calls, and allocates nothing.
    unsafe { command.pre_exec(heed) };
}
