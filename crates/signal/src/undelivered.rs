//! Signals that the kernel could not deliver, since the thread's alternate stack has no room for the signal's
//! frame.
//!
//! On x86-64 the kernel then writes no frame, discards the signal, and raises a SIGSEGV in its place, which
//! would end the process (arch/x86/kernel/signal.c, `get_sigframe`; kernel/signal.c, `signal_setup_done`).
//! The size of the stack may be all that its maker could know to be needed (`MINSIGSTKSZ` is 2,048 bytes),
//! but with AVX-512 a frame takes 3.3 KiB. The thread itself is at the interrupted instruction, and continues
//! there when the handler of that SIGSEGV returns.
//!
//! On aarch64 the kernel does not check for room.

use std::ffi::c_void;

use libc::siginfo_t;

#[cfg(target_arch = "aarch64")]
#[path = "aarch64/undelivered.rs"]
mod arch;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64/undelivered.rs"]
mod arch;

/// `SI_KERNEL` (include/uapi/asm-generic/siginfo.h).
const RAISED_BY_KERNEL: i32 = 0x80;

/// Whether the SIGSEGV with this `info` and `context` stands for a signal that could not be delivered.
///
/// # Safety
/// Called in a handler of SIGSEGV, with the arguments that the kernel passed to the handler.
pub(super) unsafe fn stands_for_signal(info: *const siginfo_t, context: *const c_void) -> bool {
    // SAFETY: by this function's contract `info` comes from the kernel; kernels set the address of every
    // SIGSEGV, to 0 where there is none.
    let is_raised = unsafe { (*info).si_code == RAISED_BY_KERNEL && (*info).si_addr().is_null() };
    // SAFETY: by this function's contract `context` is the `ucontext_t` that the kernel passed to the
    // handler.
    is_raised && arch::has_no_room_for_frame(unsafe { &*context.cast::<libc::ucontext_t>() })
}
