//! What differs on aarch64.

use super::Registers;

/// Stores where it returns to, and SP and FP as they are then.
#[unsafe(naked)]
pub(super) extern "C" fn capture(registers: *mut Registers) {
    std::arch::naked_asm!("str x30, [x0]", "mov x1, sp", "str x1, [x0, #8]", "str x29, [x0, #16]", "ret")
}

/// The return address alone: it may be signed.
pub(super) fn strip(saved: u64) -> u64 {
    saved & 0xffff_ffff_ffff
}

/// `mov x8, __NR_rt_sigreturn; svc 0`, which the kernel does not describe.
pub(super) fn is_undescribed_signal_return(pc: u64) -> bool {
    super::load(pc) == 0xd400_0001_d280_1168
}

/// The interrupted registers in the signal frame at `sp`: behind the siginfo.
pub(super) fn interrupted(sp: u64) -> Registers {
    let context = sp + size_of::<libc::siginfo_t>() as u64;
    // SAFETY: it is a signal frame.
    let mcontext = unsafe { &(*(context as *const libc::ucontext_t)).uc_mcontext };
    Registers { pc: mcontext.pc, sp: mcontext.sp, fp: mcontext.regs[29] }
}

/// Compilers keep the frame pointer where they realign a stack here.
pub(super) fn walks_through_realigned_stack(_call_back: extern "C" fn()) -> Option<usize> {
    None
}
