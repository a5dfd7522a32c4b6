//! The signals that tell a command to end.

/// SIGINT and SIGTERM, waited for instead of handled.
pub(super) struct Signals(libc::sigset_t);

impl Signals {
    /// Blocks them in this thread, and in those that it starts from now on.
    pub(super) fn block() -> Self {
        let mut set = std::mem::MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the set that the others then use; it lives on this stack.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in [libc::SIGINT, libc::SIGTERM] {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
            Self(set.assume_init())
        }
    }

    /// Waits for one of them.
    pub(super) fn wait(&self) {
        let mut signal = 0;
        // SAFETY: both point to initialised memory that outlives the call.
        while unsafe { libc::sigwait(&self.0, &mut signal) } != 0 {}
    }

    /// Lets the next one end the process: this thread takes it.
    pub(super) fn unblock(&self) {
        // SAFETY: the set is initialised, and no old one is asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &self.0, std::ptr::null_mut()) };
    }
}
