//! The handler of SIGSEGV and SIGBUS that makes loads fault-tolerant.
//!
//! HotSpot takes SIGSEGV all the time (implicit null checks, safepoint polls), so this handler is installed
//! before the JVM's and looks at the program counter. It forwards every signal that is neither the fault of
//! one of our loads nor a replacement for a signal that the kernel had no room for (`undelivered`).

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use libc::{c_int, c_void, siginfo_t};

use super::counters::{COUNTERS, add};
use super::{safe_load, undelivered};

/// The handler that was installed before ours, for one signal. Written before ours is installed, then
/// read-only. The fields of `struct sigaction` are atomics, because a handler in another thread may read them
/// while `install` runs.
struct PreviousHandler {
    handler: AtomicUsize,
    flags: AtomicUsize,
}

static PREVIOUS_SEGV: PreviousHandler =
    PreviousHandler { handler: AtomicUsize::new(0), flags: AtomicUsize::new(0) };
static PREVIOUS_BUS: PreviousHandler =
    PreviousHandler { handler: AtomicUsize::new(0), flags: AtomicUsize::new(0) };

/// Installs the handler, once per process; it stays for good. A handler that other code installs later and
/// that chains to ours keeps working. One that does not chain receives every bad load itself. So the agent
/// installs the handler again when it starts again and finds that it has been replaced.
pub fn install() -> std::io::Result<()> {
    safe_load::learn_bounds();
    install_for(libc::SIGSEGV, &PREVIOUS_SEGV)?;
    install_for(libc::SIGBUS, &PREVIOUS_BUS)
}

fn install_for(signal: c_int, previous: &PreviousHandler) -> std::io::Result<()> {
    // SAFETY: all zeroes is a valid sigaction; the calls are passed valid pointers.
    unsafe {
        let mut current: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, ptr::null(), &mut current) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        let ours = on_fault as *const () as usize;
        if current.sa_sigaction == ours {
            return Ok(());
        }
        previous.handler.store(current.sa_sigaction, Ordering::Release);
        previous.flags.store(current.sa_flags as usize, Ordering::Release);
        let mut action = current;
        action.sa_sigaction = ours;
        // Whether to use the alternate stack remains the previous handler's choice: HotSpot detects a stack
        // overflow by a guard page that leaves enough of the stack to run its handler on it.
        action.sa_flags = (current.sa_flags & libc::SA_ONSTACK) | libc::SA_SIGINFO | libc::SA_RESTART;
        if current.sa_flags & libc::SA_SIGINFO == 0 {
            libc::sigemptyset(&mut action.sa_mask);
        }
        // A bad load inside a sampling handler must be handled at once, and this handler makes no bad load
        // itself. So no signal is blocked except the signals that the previous handler asked for.
        if libc::sigaction(signal, &action, ptr::null_mut()) != 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    Ok(())
}

extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid ucontext to a handler installed with SA_SIGINFO.
    if unsafe { safe_load::fail_if_load(context) } {
        return;
    }
    // SAFETY: `info` and `context` come from the kernel; the signal is SIGSEGV.
    if signal == libc::SIGSEGV && unsafe { undelivered::stands_for_signal(info, context) } {
        return add(&COUNTERS.signals_undelivered, 1);
    }
    let previous = if signal == libc::SIGBUS { &PREVIOUS_BUS } else { &PREVIOUS_SEGV };
    match previous.handler.load(Ordering::Acquire) {
        // Returning runs the faulting instruction again. With the default action in place it then ends the
        // process as it would have without us, with a core file.
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: sigaction is async-signal-safe and the structure is valid.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &action, ptr::null_mut());
            }
        }
        handler if previous.flags.load(Ordering::Acquire) & libc::SA_SIGINFO as usize != 0 => {
            // SAFETY: installed with SA_SIGINFO, so the handler has this type.
            let handler = unsafe {
                std::mem::transmute::<usize, extern "C" fn(c_int, *mut siginfo_t, *mut c_void)>(handler)
            };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: installed without SA_SIGINFO, so the handler has this type.
            let handler = unsafe { std::mem::transmute::<usize, extern "C" fn(c_int)>(handler) };
            handler(signal);
        }
    }
}
