//! The signal handlers that others had installed before ours, and what they are owed.
//!
//! Our handler is a family of functions, one for each [`Link`]. When somebody installs a handler over ours and
//! we have to install ours again, the next member is used: the other's handler may well call the one of ours that
//! it found, and that one must go on to what was there before it, not back to the other's.
//!
//! A link is never taken back: a signal of a clock that is already gone may still be pending somewhere, and the
//! default action of most signals ends the process.

use std::cell::UnsafeCell;
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// How often handlers can be installed in the life of a process.
pub const MAX_LINKS: usize = 8;

/// One handler of ours, and what was there before it.
pub struct Link {
    /// The signal; 0 while the link is free, -1 while it is being filled.
    signal: AtomicI32,
    handler: AtomicUsize,
    flags: AtomicI32,
    mask: UnsafeCell<MaybeUninit<libc::sigset_t>>,
}

// SAFETY: `mask` is written once, before `signal` is (release), and only read afterwards.
unsafe impl Sync for Link {}

static LINKS: [Link; MAX_LINKS] = [const {
    Link {
        signal: AtomicI32::new(0),
        handler: AtomicUsize::new(libc::SIG_DFL),
        flags: AtomicI32::new(0),
        mask: UnsafeCell::new(MaybeUninit::uninit()),
    }
}; MAX_LINKS];

const BEING_FILLED: i32 = -1;

/// The address of our handler for a link.
pub type HandlerOf = fn(usize) -> Option<usize>;

/// Why our handler could not be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainError {
    /// All links are used up: somebody keeps installing over ours.
    NoLinkLeft,
    /// The system refused, with this `errno`.
    System(i32),
}

/// Which handler stands for `signal` now, as an address.
fn current(signal: i32) -> Result<libc::sigaction, ChainError> {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: the call writes a whole sigaction where it succeeds.
    if unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) } != 0 {
        return Err(ChainError::System(errno()));
    }
    // SAFETY: it succeeded.
    Ok(unsafe { action.assume_init() })
}

fn errno() -> i32 {
    // SAFETY: the C library's own location, always valid.
    unsafe { *libc::__errno_location() }
}

/// Whether `signal` comes to a handler of ours first.
pub fn is_ours(signal: i32, handler_of: HandlerOf) -> bool {
    let handler = current(signal).map(|action| action.sa_sigaction);
    (0..MAX_LINKS).any(|link| handler_of(link) == handler.ok())
}

/// Whether `signal` comes to a handler, and that is not one of ours.
pub fn has_other_handler(signal: i32, handler_of: HandlerOf) -> bool {
    let handler = current(signal).map_or(libc::SIG_DFL, |action| action.sa_sigaction);
    ![libc::SIG_DFL, libc::SIG_IGN].contains(&handler) && !is_ours(signal, handler_of)
}

/// Sees to it that `signal` comes to a handler of ours first. Not for use in a handler; one caller at a time.
///
/// The flags: SA_SIGINFO for the origin. SA_RESTART since an application that never asked for signals must not
/// see system calls fail with EINTR. SA_ONSTACK since code on small stacks of its own (Go's goroutines,
/// coroutines) declares an alternate stack for signals and would be overrun otherwise; it changes nothing for
/// threads that have none, which are all of HotSpot's. Not SA_NODEFER: the signal stays blocked while it is
/// handled, so that a handler is never entered twice on a thread. The mask is empty: a fault in a safe load must
/// get through to its own handler.
pub fn install(signal: i32, handler_of: HandlerOf) -> Result<(), ChainError> {
    if is_ours(signal, handler_of) {
        return Ok(());
    }
    let previous = current(signal)?;
    let (number, link) = LINKS
        .iter()
        .enumerate()
        .find(|(_, link)| {
            let free = link.signal.compare_exchange(0, BEING_FILLED, Ordering::AcqRel, Ordering::Relaxed);
            free.is_ok()
        })
        .ok_or(ChainError::NoLinkLeft)?;
    link.handler.store(previous.sa_sigaction, Ordering::Relaxed);
    link.flags.store(previous.sa_flags, Ordering::Relaxed);
    // SAFETY: the link was free and this call has claimed it: nobody else reads or writes the mask.
    unsafe { (*link.mask.get()).write(previous.sa_mask) };
    link.signal.store(signal, Ordering::Release);
    // SAFETY: all zeroes is a valid sigaction.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler_of(number).ok_or(ChainError::NoLinkLeft)?;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the handler is ours and lives as long as the library, which is never unloaded.
    if unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) } != 0 {
        let error = ChainError::System(errno());
        link.signal.store(0, Ordering::Release);
        return Err(error);
    }
    Ok(())
}

/// Whether a handler was there before our handler `link`, rather than a default action.
pub fn has_handler(link: usize) -> bool {
    let handler = LINKS.get(link).map(|link| link.handler.load(Ordering::Relaxed));
    handler.is_some_and(|handler| ![libc::SIG_DFL, libc::SIG_IGN].contains(&handler))
}

/// Does with a signal that is not ours what would have been done without us. Two of the previous handler's flags
/// cannot be honoured, because they act before any handler runs: its SA_ONSTACK, and the absence of SA_RESTART.
///
/// # Safety
/// Called in our handler `link` with that handler's own arguments.
pub unsafe fn forward(link: usize, signal: i32, info: *mut libc::siginfo_t, ucontext: *mut libc::c_void) {
    let Some(link) = LINKS.get(link) else { return };
    let flags = link.flags.load(Ordering::Relaxed);
    let handler = if flags & libc::SA_RESETHAND == 0 {
        link.handler.load(Ordering::Relaxed)
    } else {
        link.handler.swap(libc::SIG_DFL, Ordering::Relaxed)
    };
    match handler {
        libc::SIG_IGN => {}
        libc::SIG_DFL => default_action(signal),
        handler => {
            // SAFETY: `install` wrote it before the handler could run.
            let mut mask = unsafe { (*link.mask.get()).assume_init() };
            let mut outer = MaybeUninit::<libc::sigset_t>::uninit();
            // SAFETY: both sets are valid for what the calls do with them; a handler that was installed with
            // SA_SIGINFO takes three arguments, one without takes the signal.
            unsafe {
                let nodefer = flags & libc::SA_NODEFER != 0;
                if !nodefer {
                    libc::sigaddset(&raw mut mask, signal);
                }
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const mask, outer.as_mut_ptr());
                if nodefer {
                    let mut own = MaybeUninit::<libc::sigset_t>::uninit();
                    libc::sigemptyset(own.as_mut_ptr());
                    libc::sigaddset(own.as_mut_ptr(), signal);
                    libc::pthread_sigmask(libc::SIG_UNBLOCK, own.as_ptr(), ptr::null_mut());
                }
                if flags & libc::SA_SIGINFO != 0 {
                    let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                        mem::transmute(handler);
                    handler(signal, info, ucontext);
                } else {
                    let handler: extern "C" fn(i32) = mem::transmute(handler);
                    handler(signal);
                }
                libc::pthread_sigmask(libc::SIG_SETMASK, outer.as_ptr(), ptr::null_mut());
            }
        }
    }
}

/// The default action (signal(7)): nothing for those that are ignored by default; for the others the signal is
/// sent again to this thread with the default restored, and comes when our handler returns.
fn default_action(signal: i32) {
    if [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH].contains(&signal) {
        return;
    }
    // SAFETY: all zeroes is a valid sigaction, with SIG_DFL; the calls are async-signal-safe.
    unsafe {
        let action: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, &raw const action, ptr::null_mut());
        libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal);
    }
}
