//! The signal handlers that others had installed before ours, and what they are owed.
//!
//! Our handler is a family of functions, one for each [`Link`]. When somebody installs a handler over ours and
//! we have to install ours again, the next member is used: the other's handler may well call the one of ours that
//! it found, and that one must go on to what was there before it, not back to the other's.
//!
//! A link is never taken back: a signal of a clock that is already gone may still be pending somewhere, and the
//! default action of most signals ends the process.
//!
//! A handler of ours is entered by the kernel, or called by the handler that was installed over it. The default action is
//! the kernel's: it is applied where the kernel has entered the link, never where another handler calls it. That one
//! has handled the signal, and would have found no handler to call without us.
//!
//! While a handler of ours runs every signal is blocked but those of [`FAULTS`]: two engines' handlers never stand on one
//! stack, and no foreign handler leaves one of ours by `siglongjmp` in the middle of a sample.

use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};

/// Signals that a thread raises by what it executes. Blocked, they would end the process: a load that may fail
/// is one, the VM's own implicit checks are others, and so are breakpoints that another agent has put into the VM, and
/// system calls that a seccomp filter answers by a signal.
pub const FAULTS: [libc::c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

use crate::core::thread::current_os_tid;

/// How often handlers can be installed in the life of a process.
pub const MAX_LINKS: usize = 8;

/// One handler of ours, and what was there before it.
pub struct Link {
    /// The signal; 0 while the link is free, -1 while it is being filled.
    signal: AtomicI32,
    handler: AtomicUsize,
    flags: AtomicI32,
    mask: AtomicU64,
}

static LINKS: [Link; MAX_LINKS] = [const {
    Link {
        signal: AtomicI32::new(0),
        handler: AtomicUsize::new(libc::SIG_DFL),
        flags: AtomicI32::new(0),
        mask: AtomicU64::new(0),
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
/// handled, so that a handler is never entered twice on a thread. The mask has all signals but [`FAULTS`]: a fault in a
/// safe load must get through to its own handler.
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
    link.mask.store(kernel_mask(&previous.sa_mask), Ordering::Relaxed);
    link.signal.store(signal, Ordering::Release);
    // SAFETY: all zeroes is a valid sigaction.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler_of(number).ok_or(ChainError::NoLinkLeft)?;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the set is valid.
    unsafe {
        libc::sigfillset(&raw mut action.sa_mask);
        for fault in FAULTS {
            libc::sigdelset(&raw mut action.sa_mask, fault);
        }
    }
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

/// The first 64 signals of a set, which are all of the kernel's (include/uapi/asm-generic/signal.h, `_NSIG`): bit `n - 1`
/// is signal `n`. glibc's and musl's sets begin with them.
fn kernel_mask(set: &libc::sigset_t) -> u64 {
    // SAFETY: a sigset_t is at least as large and as aligned, and initialised.
    unsafe { ptr::from_ref(set).cast::<u64>().read() }
}

const fn bit(signal: i32) -> u64 {
    1_u64.wrapping_shl(signal.wrapping_sub(1).cast_unsigned())
}

/// The size that the kernel takes for a set of signals.
const KERNEL_MASK_BYTES: usize = size_of::<u64>();

/// Sets the thread's mask and returns the one before. By the system call: the C library's function leaves out the signals
/// that it keeps for itself.
fn set_mask(mask: u64) -> u64 {
    let mut before = 0_u64;
    // SAFETY: the kernel reads one set and writes another.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const mask,
            &raw mut before,
            KERNEL_MASK_BYTES,
        )
    };
    before
}

/// `struct sigaction` as the kernel has it (include/linux/signal_types.h; x86-64 and aarch64 both have a restorer).
#[repr(C)]
struct KernelAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// The kernel's action for `signal`, also where another library replaces the C library's function. Async-signal-safe.
fn kernel_action(signal: i32) -> Option<KernelAction> {
    let mut action = KernelAction { handler: 0, flags: 0, restorer: 0, mask: 0 };
    let none = ptr::null::<KernelAction>();
    // SAFETY: the kernel writes one action.
    let result =
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, none, &raw mut action, KERNEL_MASK_BYTES) };
    (result == 0).then_some(action)
}

/// Whether the handler of `signal` runs on the thread's alternate stack, if there is one. Async-signal-safe.
pub fn is_on_alternate_stack(signal: i32) -> bool {
    kernel_action(signal).is_some_and(|action| action.flags & libc::SA_ONSTACK as u64 != 0)
}

/// Does with a signal that is not ours what would have been done without us, with the signal mask that there would have
/// been. Two of the previous handler's flags cannot be honoured, because they act before any handler runs: its
/// SA_ONSTACK, and the absence of SA_RESTART.
///
/// # Safety
/// Called in our handler `link`, which `handler_of` knows, with that handler's own arguments.
pub unsafe fn forward(
    link: usize,
    handler_of: HandlerOf,
    signal: i32,
    info: *mut libc::siginfo_t,
    ucontext: *mut libc::c_void,
) {
    let own = handler_of(link);
    let Some(link) = LINKS.get(link) else { return };
    let flags = link.flags.load(Ordering::Relaxed);
    let handler = if flags & libc::SA_RESETHAND == 0 {
        link.handler.load(Ordering::Relaxed)
    } else {
        link.handler.swap(libc::SIG_DFL, Ordering::Relaxed)
    };
    if handler == libc::SIG_IGN {
        return;
    }
    let is_entered_by_kernel = kernel_action(signal).is_some_and(|action| Some(action.handler) == own);
    if handler == libc::SIG_DFL {
        if is_entered_by_kernel {
            default_action(signal);
        }
        return;
    }
    if !is_entered_by_kernel {
        // The handler that calls us would have called this one, and has the mask that it would have.
        // SAFETY: by the contract.
        return unsafe { call(handler, flags, signal, info, ucontext) };
    }
    // SAFETY: by the contract the context is the kernel's, whose set has these bits and no more.
    let interrupted =
        unsafe { (&raw const (*ucontext.cast::<libc::ucontext_t>()).uc_sigmask).cast::<u64>().read() };
    let own_signal = if flags & libc::SA_NODEFER == 0 { bit(signal) } else { 0 };
    let before = set_mask(interrupted | link.mask.load(Ordering::Relaxed) | own_signal);
    // SAFETY: by the contract.
    unsafe { call(handler, flags, signal, info, ucontext) };
    set_mask(before);
}

/// Calls a handler.
///
/// # Safety
/// `handler` was installed with `flags`; the arguments are those of a handler of `signal`.
unsafe fn call(
    handler: usize,
    flags: i32,
    signal: i32,
    info: *mut libc::siginfo_t,
    ucontext: *mut libc::c_void,
) {
    // SAFETY: a handler that was installed with SA_SIGINFO takes three arguments, one without takes the signal.
    unsafe {
        if flags & libc::SA_SIGINFO != 0 {
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                mem::transmute(handler);
            handler(signal, info, ucontext);
        } else {
            let handler: extern "C" fn(i32) = mem::transmute(handler);
            handler(signal);
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
        libc::syscall(libc::SYS_tgkill, libc::getpid(), current_os_tid(), signal);
    }
}
