//! The signal handlers that were installed before ours, and how signals are forwarded to them.
//!
//! Our handler is a family of functions, one for each [`HandlerLink`]. When other code installs a handler
//! over ours and we have to install ours again, the next function of the family is used. The foreign handler
//! may call the function of ours that it found, and that function must forward to the handler before it, not
//! back to the foreign handler.
//!
//! A link is never released: a signal of a clock that is already gone may still be pending, and the default
//! action of most signals ends the process.
//!
//! A handler of ours is entered by the kernel, or called by the handler that was installed over it. The
//! default action is the kernel's: it is applied where the kernel has entered the link, never where a foreign
//! handler calls it. The foreign handler has handled the signal, and without us it would have found no
//! handler to call.
//!
//! While a handler of ours runs, every signal is blocked except [`FAULTS`]. So the handlers of two engines
//! never share a stack, and no foreign handler leaves one of ours by `siglongjmp` in the middle of a sample.

use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};

/// Signals that an instruction of the thread itself raises. If they were blocked they would end the process.
/// Such signals come from loads that may fail, from the VM's implicit checks, from breakpoints that another
/// agent has set in the VM, and from system calls that a seccomp filter answers by a signal.
pub const FAULTS: [libc::c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

use otlpprof_core::thread::current_os_tid;

/// The number of times that handlers can be installed in the life of a process.
pub const MAX_LINKS: usize = 8;

/// One handler of ours, and the action that it replaced.
pub struct HandlerLink {
    /// The signal; 0 while the link is free, -1 while it is being filled.
    signal: AtomicI32,
    handler: AtomicUsize,
    flags: AtomicI32,
    mask: AtomicU64,
}

static LINKS: [HandlerLink; MAX_LINKS] = [const {
    HandlerLink {
        signal: AtomicI32::new(0),
        handler: AtomicUsize::new(libc::SIG_DFL),
        flags: AtomicI32::new(0),
        mask: AtomicU64::new(0),
    }
}; MAX_LINKS];

const BEING_FILLED: i32 = -1;

/// Returns the address of our handler for a link.
pub type HandlerOf = fn(usize) -> Option<usize>;

/// The reason why our handler could not be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainError {
    /// All links are used up: other code keeps installing over ours.
    NoLinkLeft,
    /// The system refused the call, with this `errno`.
    System(i32),
}

/// Reads the current action of `signal`.
fn current(signal: i32) -> Result<libc::sigaction, ChainError> {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: the call writes a whole sigaction if it succeeds.
    if unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) } != 0 {
        return Err(ChainError::System(errno()));
    }
    // SAFETY: the call above succeeded and has initialised the action.
    Ok(unsafe { action.assume_init() })
}

fn errno() -> i32 {
    // SAFETY: the C library's location of this thread's `errno`, always valid.
    unsafe { *libc::__errno_location() }
}

/// Whether `signal` is delivered to a handler of ours first.
pub fn is_ours(signal: i32, handler_of: HandlerOf) -> bool {
    let handler = current(signal).map(|action| action.sa_sigaction);
    (0..MAX_LINKS).any(|link| handler_of(link) == handler.ok())
}

/// Whether `signal` is delivered to a handler that is not ours.
pub fn has_other_handler(signal: i32, handler_of: HandlerOf) -> bool {
    let handler = current(signal).map_or(libc::SIG_DFL, |action| action.sa_sigaction);
    ![libc::SIG_DFL, libc::SIG_IGN].contains(&handler) && !is_ours(signal, handler_of)
}

/// Installs a handler of ours as the first receiver of `signal`. Not for use in a handler; one caller at a
/// time.
///
/// The flags: SA_SIGINFO for the signal's origin. SA_RESTART since an application that never asked for
/// signals must not see system calls fail with EINTR. SA_ONSTACK since code on small stacks of its own (Go's
/// goroutines, coroutines) declares an alternate stack for signals and would otherwise be overrun; the flag
/// changes nothing for threads without an alternate stack, such as all of HotSpot's. Not SA_NODEFER: the
/// signal stays blocked while it is handled, so that a handler is never entered twice on a thread. The mask
/// has all signals except [`FAULTS`]: a fault in a safe load must reach its own handler.
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
    // SAFETY: the set is part of `action`, and valid.
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

/// Whether our handler `link` replaced a handler, rather than a default action.
pub fn has_handler(link: usize) -> bool {
    let handler = LINKS.get(link).map(|link| link.handler.load(Ordering::Relaxed));
    handler.is_some_and(|handler| ![libc::SIG_DFL, libc::SIG_IGN].contains(&handler))
}

/// Returns the first 64 signals of a set, which are all signals of the kernel
/// (include/uapi/asm-generic/signal.h, `_NSIG`): bit `n - 1` is signal `n`. The sets of glibc and musl begin
/// with these bits.
fn kernel_mask(set: &libc::sigset_t) -> u64 {
    // SAFETY: a sigset_t is at least as large and as aligned as a u64, and initialised.
    unsafe { ptr::from_ref(set).cast::<u64>().read() }
}

const fn bit(signal: i32) -> u64 {
    1_u64.wrapping_shl(signal.wrapping_sub(1).cast_unsigned())
}

/// The size, in bytes, that the kernel expects of a set of signals.
const KERNEL_MASK_BYTES: usize = size_of::<u64>();

/// Sets the thread's mask and returns the previous one. Makes the system call itself, since the C library's
/// function skips the signals that the library reserves for itself.
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

/// `struct sigaction` as the kernel defines it (include/linux/signal_types.h; x86-64 and aarch64 both have a
/// restorer).
#[repr(C)]
struct KernelAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// Reads the kernel's action for `signal`, even if another library replaces the C library's function.
/// Async-signal-safe.
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

/// Handles a foreign signal as it would have been handled without us, with the signal mask that would have
/// been in effect. Two of the previous handler's flags cannot be honoured, because they act before any
/// handler runs: its SA_ONSTACK, and the absence of SA_RESTART.
///
/// # Safety
/// Called in our handler `link`, which `handler_of` knows, with the arguments of that handler.
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
        // Without us the handler that calls us would have called this handler itself, with the present mask.
        // SAFETY: by this function's contract the arguments are valid for the handler; `flags` belong to
        // `handler`.
        return unsafe { call(handler, flags, signal, info, ucontext) };
    }
    // SAFETY: by this function's contract the context comes from the kernel, whose mask has exactly these 64
    // bits.
    let interrupted =
        unsafe { (&raw const (*ucontext.cast::<libc::ucontext_t>()).uc_sigmask).cast::<u64>().read() };
    let own_signal = if flags & libc::SA_NODEFER == 0 { bit(signal) } else { 0 };
    let before = set_mask(interrupted | link.mask.load(Ordering::Relaxed) | own_signal);
    // SAFETY: by this function's contract the arguments are valid for the handler; `flags` belong to
    // `handler`.
    unsafe { call(handler, flags, signal, info, ucontext) };
    set_mask(before);
}

/// Calls `handler` with the arguments that its flags ask for.
///
/// # Safety
/// `handler` was installed with `flags`; the arguments are the ones of a handler of `signal`.
unsafe fn call(
    handler: usize,
    flags: i32,
    signal: i32,
    info: *mut libc::siginfo_t,
    ucontext: *mut libc::c_void,
) {
    // SAFETY: a handler that was installed with SA_SIGINFO takes three arguments, any other takes the signal
    // alone.
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

/// Applies the default action (signal(7)): nothing for signals that are ignored by default. Any other signal
/// is sent again to this thread with the default action restored, and is delivered when our handler returns.
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
