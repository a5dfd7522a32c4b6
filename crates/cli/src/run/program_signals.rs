//! Signals to the command while a program runs: which of them the program gets from the command.
//!
//! The program is in the command's process group. A terminal sends its signals to the whole group, so that
//! the program has them already. A signal that a process sends only to the command is passed on.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::ptr;

/// The signals that are taken over besides the real-time signals and SIGCHLD. By default most of them end a
/// process. Signals that stop and continue processes keep their effect.
const TAKEN: [c_int; 12] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGWINCH,
    libc::SIGIO,
    libc::SIGPWR,
];

/// The signals, which are waited for rather than handled.
#[derive(Clone, Copy)]
pub(super) struct ProgramSignals {
    taken: libc::sigset_t,
    /// The mask before.
    mask: libc::sigset_t,
}

/// A signal that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    /// The signal's number.
    pub(super) signal: c_int,
    /// Whether the kernel has sent the signal, such as for a terminal, rather than a process.
    is_of_kernel: bool,
}

impl ProgramSignals {
    /// Blocks the signals in this thread, and in threads and programs that it starts from now on.
    pub(super) fn block() -> Self {
        let mut taken = MaybeUninit::uninit();
        let mut mask = MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the set, which lives on this stack, before the other calls use it.
        // pthread_sigmask initialises the old mask. It fails only for an unknown first argument.
        unsafe {
            // A parent may have left SIGCHLD ignored. The kernel would then discard the status of children.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::sigemptyset(taken.as_mut_ptr());
            for signal in TAKEN.into_iter().chain([libc::SIGCHLD]).chain(libc::SIGRTMIN()..=libc::SIGRTMAX())
            {
                libc::sigaddset(taken.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, taken.as_ptr(), mask.as_mut_ptr());
            Self { taken: taken.assume_init(), mask: mask.assume_init() }
        }
    }

    /// Waits for one of the signals.
    pub(super) fn wait(&self) -> Received {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        loop {
            // SAFETY: both pointers are to memory that outlives the call.
            let signal = unsafe { libc::sigwaitinfo(&self.taken, info.as_mut_ptr()) };
            if signal > 0 {
                // SAFETY: zeros are valid for the structure of integers and pointers, and the call has
                // filled it in.
                let is_of_kernel = unsafe { info.assume_init() }.si_code == libc::SI_KERNEL;
                return Received { signal, is_of_kernel };
            }
        }
    }

    /// Lets a program that is started later have the mask from before.
    pub(super) fn restore_in(&self, command: &mut Command) {
        let mask = self.mask;
        let restore = move || {
            // SAFETY: the set is initialised, and a null pointer means that the old mask is not returned.
            match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &mask, ptr::null_mut()) } {
                0 => Ok(()),
                error => Err(io::Error::from_raw_os_error(error)),
            }
        };
        // SAFETY: the closure calls an async-signal-safe function (signal-safety(7)), and allocates nothing.
        unsafe { command.pre_exec(restore) };
    }
}

impl Received {
    /// Whether the program has received the signal, too.
    ///
    /// When a terminal hangs up, the kernel sends SIGHUP only to the leader of the session, and to the others
    /// only when the leader has ended.
    pub(super) fn has_reached_the_program(self) -> bool {
        // SAFETY: these calls access no memory.
        let leads_session = || unsafe { libc::getsid(0) == libc::getpid() };
        self.is_of_kernel && !(self.signal == libc::SIGHUP && leads_session())
    }

    /// Whether the signal asks a command to end.
    pub(super) fn is_interrupt(self) -> bool {
        [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM].contains(&self.signal)
    }
}
