//! The registers with which a walk begins.

use libc::{c_void, mcontext_t, siginfo_t, ucontext_t};
use otlpprof_core::memory::Memory;

use super::return_address::strip;
use crate::walk::walk_error::WalkError;

/// The general registers of an interrupted thread by DWARF number (DWARF for the Arm 64-bit Architecture,
/// "DWARF register names"), and the program counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Registers {
    /// x0 … x30, sp.
    pub general: [u64; 32],
    /// pc.
    pub pc: u64,
}

macro_rules! register {
    ($($(#[$doc:meta])* $name:ident = $number:literal),*) => {
        $($(#[$doc])* #[inline] pub fn $name(&self) -> u64 {
            self.general.get($number).copied().unwrap_or(0)
        })*
    };
}

impl Registers {
    /// The length of `svc #0`.
    pub const SYSTEM_CALL_BYTES: u64 = 4;

    register! {
        /// x0.
        x0 = 0,
        /// x1, the first argument of a static Java method (cpu/aarch64/assembler_aarch64.hpp, `j_rarg0`).
        java_argument = 1,
        /// x3.
        x3 = 3,
        /// x9.
        x9 = 9,
        /// x12, HotSpot's Method in the entry of a method.
        x12 = 12,
        /// x19.
        x19 = 19,
        /// x20, the interpreter's expression stack pointer.
        x20 = 20,
        /// x22, the interpreter's bytecode pointer.
        x22 = 22,
        /// x23.
        x23 = 23,
        /// x28, HotSpot's JavaThread in Java code.
        x28 = 28,
        /// x29, the frame pointer, if the code keeps one.
        fp = 29,
        /// sp.
        sp = 31
    }

    /// The registers in a handler's context.
    ///
    /// # Safety
    /// `context` is the `ucontext_t` that the kernel passed to a handler.
    pub unsafe fn from_context(context: *const c_void) -> Self {
        // SAFETY: the caller passes the `ucontext_t` that the kernel passed to a handler.
        let mcontext = unsafe { &(*context.cast::<ucontext_t>()).uc_mcontext };
        let mut registers = Self { pc: mcontext.pc, ..Self::default() };
        let saved = mcontext.regs.iter().copied().chain([mcontext.sp]);
        for (general, saved) in registers.general.iter_mut().zip(saved) {
            *general = saved;
        }
        registers
    }

    /// Only the program counter.
    ///
    /// # Safety
    /// As for [`Registers::from_context`].
    pub unsafe fn program_counter(context: *const c_void) -> u64 {
        // SAFETY: the caller passes the `ucontext_t` that the kernel passed to a handler.
        unsafe { (*context.cast::<ucontext_t>()).uc_mcontext.pc }
    }

    /// Whether a system call was waiting when the thread was interrupted.
    pub fn is_in_waiting_system_call<M: Memory>(&self, memory: &M) -> bool {
        self.pc_after_waiting_system_call(memory).is_some()
    }

    /// The address after the system call that was waiting when the thread was interrupted. The kernel either
    /// ends the call with EINTR, or sets the program counter back to it, so that the thread makes the call
    /// again (arch/arm64/kernel/signal.c, `do_signal`).
    pub fn pc_after_waiting_system_call<M: Memory>(&self, memory: &M) -> Option<u64> {
        /// `svc #0`.
        const SVC: u32 = 0xd400_0001;
        let is_call_at = |pc: u64| memory.load_u32(pc) == Some(SVC);
        if is_call_at(self.pc) {
            return Some(self.pc.wrapping_add(Self::SYSTEM_CALL_BYTES));
        }
        let has_ended = self.x0() as i32 == libc::EINTR.wrapping_neg()
            && is_call_at(self.pc.wrapping_sub(Self::SYSTEM_CALL_BYTES));
        has_ended.then_some(self.pc)
    }

    /// Makes the thread, which has faulted in a load of `signal::safe_load`, go on at `after` that load.
    /// Clears the register (x9) that says whether the load succeeded.
    ///
    /// # Safety
    /// As for [`Registers::from_context`], and `after` must be the address after the load.
    pub unsafe fn fail_load(context: *mut c_void, after: u64) {
        // SAFETY: the caller passes the `ucontext_t` that the kernel passed to a handler.
        let mcontext = unsafe { &mut (*context.cast::<ucontext_t>()).uc_mcontext };
        mcontext.pc = after;
        if let Some(register) = mcontext.regs.get_mut(9) {
            *register = 0;
        }
    }

    /// The register with this DWARF number.
    pub fn by_dwarf_number(&self, number: u8) -> Option<u64> {
        self.general.get(usize::from(number)).copied()
    }

    /// The return address of a function that has not saved it, from x30.
    pub fn return_address(&self) -> Option<u64> {
        self.general.get(30).copied().map(strip)
    }

    /// x30 without its signature.
    pub fn lr(&self) -> u64 {
        self.return_address().unwrap_or(0)
    }
}

/// The registers in the signal frame at `sp`: a siginfo, followed by the `ucontext_t` (the kernel's struct
/// rt_sigframe, arch/arm64/kernel/signal.c).
pub fn read_signal_frame<M: Memory>(memory: &M, sp: u64) -> Result<Registers, WalkError> {
    let mcontext = sp
        .wrapping_add(size_of::<siginfo_t>() as u64)
        .wrapping_add(std::mem::offset_of!(ucontext_t, uc_mcontext) as u64);
    let read =
        |offset: usize| memory.load_u64(mcontext.wrapping_add(offset as u64)).ok_or(WalkError::Unreadable);
    let mut registers = Registers { pc: read(std::mem::offset_of!(mcontext_t, pc))?, ..Registers::default() };
    // sp follows the 31 registers.
    let mut offset = std::mem::offset_of!(mcontext_t, regs);
    for general in &mut registers.general {
        *general = read(offset)?;
        offset = offset.wrapping_add(8);
    }
    Ok(registers)
}

/// Whether a handler returns to `pc`: the code there is `mov x8, __NR_rt_sigreturn; svc 0`. The kernel's
/// trampoline has no call frame information that identifies it (arch/arm64/kernel/vdso/sigreturn.S).
pub fn is_signal_return<M: Memory>(memory: &M, pc: u64) -> bool {
    memory.load_u64(pc) == Some(0xd400_0001_d280_1168)
}
