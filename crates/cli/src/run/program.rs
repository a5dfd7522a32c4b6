//! The program, from its start to its end.

use std::ffi::c_int;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};

use super::program_signals::ProgramSignals;

/// The exit code of a shell that does not find a program, and of one that cannot execute it (POSIX, "Shell
/// Command Language", 2.8.2).
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;
/// A shell adds this to the number of the signal that ended a program.
pub(super) const SIGNALLED: c_int = 128;

/// Starts a program, passes signals on to it, and waits for its end.
///
/// # Errors
/// The program cannot be started.
pub(super) fn run(command: &mut Command, signals: &ProgramSignals) -> io::Result<ExitStatus> {
    signals.restore_in(command);
    let program = command.spawn()?.id().cast_signed();
    loop {
        let received = signals.wait();
        if received.signal == libc::SIGCHLD {
            if let Some(status) = reap(program) {
                return Ok(status);
            }
        } else if !received.has_reached_the_program() {
            // SAFETY: the call accesses no memory. The program has not been reaped, so its process id has not
            // been reused.
            unsafe { libc::kill(program, received.signal) };
        }
    }
}

/// Reaps children that have ended. Returns the program's status, once it is among them. As the first process
/// of a container, the command also has children that it has not started.
fn reap(program: libc::pid_t) -> Option<ExitStatus> {
    loop {
        let mut status = 0;
        // SAFETY: the pointer is to a variable of this frame.
        let ended = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
        if ended == program {
            return Some(ExitStatus::from_raw(status));
        }
        if ended <= 0 {
            return None;
        }
    }
}

/// The exit code of a program that has ended: its own, or 128 and the signal that ended it.
pub(super) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| SIGNALLED + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// The exit code for a program that was not started.
pub(super) fn exit_code_of_error(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE }
}
