//! The signals that end a command, and those that a terminal sends to its view.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// SIGINT and SIGTERM, and possibly SIGQUIT and SIGHUP, which are waited for rather than handled.
pub(super) struct Signals(libc::sigset_t);

impl Signals {
    /// Blocks SIGINT and SIGTERM in this thread and in the threads that it starts from now on.
    pub(super) fn block() -> Self {
        Self::block_all(&[libc::SIGINT, libc::SIGTERM])
    }

    /// Blocks all signals of a terminal that end a command: SIGQUIT, too, and SIGHUP unless it is ignored. A
    /// command that `nohup` has started goes on without its terminal.
    pub(super) fn block_all_of_terminal() -> Self {
        // SAFETY: the structure consists of integers and a pointer, so zeros are a valid value.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: a null pointer changes nothing, and the other is to a variable of this frame.
        unsafe { libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut action) };
        match action.sa_sigaction {
            libc::SIG_IGN => Self::block_all(&[libc::SIGINT, libc::SIGTERM, libc::SIGQUIT]),
            _ => Self::block_all(&[libc::SIGINT, libc::SIGTERM, libc::SIGQUIT, libc::SIGHUP]),
        }
    }

    /// Blocks SIGTSTP, so that a command can restore the terminal before it stops, and SIGWINCH, which the
    /// terminal sends when its size has changed.
    pub(super) fn block_of_view() -> Self {
        Self::block_all(&[libc::SIGTSTP, libc::SIGWINCH])
    }

    fn block_all(signals: &[libc::c_int]) -> Self {
        let mut set = std::mem::MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the set, which lives on this stack, before the other calls use it.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in signals {
                libc::sigaddset(set.as_mut_ptr(), *signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
            Self(set.assume_init())
        }
    }

    /// Waits for one of the signals.
    pub(super) fn wait(&self) {
        let mut signal = 0;
        // SAFETY: both pointers are to initialised memory that outlives the call.
        while unsafe { libc::sigwait(&self.0, &mut signal) } != 0 {}
    }

    /// A descriptor that has something to read when one of the signals has arrived (signalfd(2)).
    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        // SAFETY: the set is initialised; -1 requests another descriptor.
        let descriptor = unsafe { libc::signalfd(-1, &self.0, libc::SFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened, and nobody else has it.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    /// Takes a signal that has arrived at a descriptor, and returns the signal's number.
    pub(super) fn take(arrived: BorrowedFd<'_>) -> u8 {
        // SAFETY: the structure consists of integers, so zeros are a valid value.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer and the length describe the structure.
        unsafe { libc::read(arrived.as_raw_fd(), (&raw mut info).cast(), size_of_val(&info)) };
        u8::try_from(info.ssi_signo).unwrap_or(0)
    }

    /// Lets the next signal end the process: this thread receives it.
    pub(super) fn unblock(&self) {
        // SAFETY: the set is initialised, and a null pointer means that the old mask is not returned.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &self.0, std::ptr::null_mut()) };
    }
}
