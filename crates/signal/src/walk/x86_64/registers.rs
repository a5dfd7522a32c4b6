//! The registers with which a walk begins.

use libc::{c_void, ucontext_t};
use otlpprof_core::memory::Memory;

use crate::walk::walk_error::WalkError;

/// The general registers of an interrupted thread by DWARF number (System V psABI for x86_64, table 3.36),
/// and the program counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Registers {
    /// rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 … r15.
    pub general: [u64; 16],
    /// rip.
    pub pc: u64,
}

const GREGS_BY_DWARF_NUMBER: [i32; 16] = [
    libc::REG_RAX,
    libc::REG_RDX,
    libc::REG_RCX,
    libc::REG_RBX,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_RBP,
    libc::REG_RSP,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

macro_rules! register {
    ($($(#[$doc:meta])* $name:ident = $number:literal),*) => {
        $($(#[$doc])* #[inline] pub fn $name(&self) -> u64 {
            self.general.get($number).copied().unwrap_or(0)
        })*
    };
}

impl Registers {
    /// The length of `syscall`.
    pub const SYSTEM_CALL_BYTES: u64 = 2;

    register! {
        /// rax.
        rax = 0,
        /// rdx.
        rdx = 1,
        /// rcx.
        rcx = 2,
        /// rbx.
        rbx = 3,
        /// rbp, the frame pointer, if the code keeps one.
        fp = 6,
        /// rsp.
        sp = 7,
        /// rsi.
        rsi = 4,
        /// rsi, the first argument of a static Java method (cpu/x86/assembler_x86.hpp, `j_rarg0`).
        java_argument = 4,
        /// rdi.
        rdi = 5,
        /// r11.
        r11 = 11,
        /// r13.
        r13 = 13,
        /// r15, HotSpot's JavaThread in Java code.
        r15 = 15
    }

    /// The registers in a handler's context.
    ///
    /// # Safety
    /// `context` is the `ucontext_t` that the kernel passed to a handler.
    pub unsafe fn from_context(context: *const c_void) -> Self {
        // SAFETY: the caller passes the `ucontext_t` that the kernel passed to a handler.
        let gregs = unsafe { &(*context.cast::<ucontext_t>()).uc_mcontext.gregs };
        let read = |register: i32| gregs.get(register as usize).copied().unwrap_or(0) as u64;
        Self { general: GREGS_BY_DWARF_NUMBER.map(read), pc: read(libc::REG_RIP) }
    }

    /// Only the program counter.
    ///
    /// # Safety
    /// As for [`Registers::from_context`].
    pub unsafe fn program_counter(context: *const c_void) -> u64 {
        // SAFETY: the caller passes the `ucontext_t` that the kernel passed to a handler.
        let gregs = unsafe { &(*context.cast::<ucontext_t>()).uc_mcontext.gregs };
        gregs.get(libc::REG_RIP as usize).copied().unwrap_or(0) as u64
    }

    /// Makes the thread, which has faulted in a load of `signal::safe_load`, go on at `after` that load.
    /// Clears the register (rdx) that says whether the load succeeded.
    ///
    /// # Safety
    /// As for [`Registers::from_context`], and `after` must be the address after the load.
    pub unsafe fn fail_load(context: *mut c_void, after: u64) {
        // SAFETY: the caller passes the `ucontext_t` that the kernel passed to a handler.
        let gregs = unsafe { &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs };
        for (register, value) in [(libc::REG_RIP, after), (libc::REG_RDX, 0)] {
            if let Some(register) = gregs.get_mut(register as usize) {
                *register = value as i64;
            }
        }
    }

    /// Whether a system call was waiting when the thread was interrupted.
    pub fn is_in_waiting_system_call<M: Memory>(&self, memory: &M) -> bool {
        self.pc_after_waiting_system_call(memory).is_some()
    }

    /// The address after the system call that was waiting when the thread was interrupted. The kernel either
    /// ends the call with EINTR, or sets the program counter back to it, so that the thread makes the call
    /// again (arch/x86/kernel/signal.c, `handle_signal`, `arch_do_signal_or_restart`).
    pub fn pc_after_waiting_system_call<M: Memory>(&self, memory: &M) -> Option<u64> {
        const SYSCALL: u16 = 0x050f;
        let is_call_at = |pc: u64| memory.load_u16(pc) == Some(SYSCALL);
        if is_call_at(self.pc) {
            return Some(self.pc.wrapping_add(Self::SYSTEM_CALL_BYTES));
        }
        let has_ended = self.rax() as i32 == libc::EINTR.wrapping_neg()
            && is_call_at(self.pc.wrapping_sub(Self::SYSTEM_CALL_BYTES));
        has_ended.then_some(self.pc)
    }

    /// The return address of a function that has not saved it: always `None`, since calls push it.
    pub fn return_address(&self) -> Option<u64> {
        None
    }

    /// The register with this DWARF number.
    pub fn by_dwarf_number(&self, number: u8) -> Option<u64> {
        self.general.get(usize::from(number)).copied()
    }
}

/// The registers in the signal frame whose `ucontext_t` is at `sp`. SP has this value when the handler has
/// returned to the trampoline of `rt_sigreturn` (arch/x86/include/asm/sigframe.h: after `pretcode`).
pub fn read_signal_frame<M: Memory>(memory: &M, sp: u64) -> Result<Registers, WalkError> {
    let gregs = sp.wrapping_add(std::mem::offset_of!(ucontext_t, uc_mcontext) as u64);
    let read = |register: i32| {
        memory.load_u64(gregs.wrapping_add((register as u64).wrapping_mul(8))).ok_or(WalkError::Unreadable)
    };
    let mut registers = Registers { pc: read(libc::REG_RIP)?, ..Registers::default() };
    for (general, number) in registers.general.iter_mut().zip(GREGS_BY_DWARF_NUMBER) {
        *general = read(number)?;
    }
    Ok(registers)
}

/// Whether a handler returns to `pc`, or is about to: the code there is `mov $__NR_rt_sigreturn, %rax;
/// syscall` (or `%eax`), or the second of these instructions. glibc describes its trampoline in call frame
/// information, musl does not (src/signal/x86_64/restore.s).
pub fn is_signal_return<M: Memory>(memory: &M, pc: u64) -> bool {
    const NUMBER: u8 = libc::SYS_rt_sigreturn as u8;
    let (mut before, mut code) = ([0; 7], [0; 9]);
    // Code that cannot be read is no trampoline.
    let _ = memory.read_bytes(pc, &mut code);
    let _ = memory.read_bytes(pc.wrapping_sub(7), &mut before);
    matches!(
        (before, code),
        (_, [0x48, 0xc7, 0xc0, NUMBER, 0, 0, 0, 0x0f, 0x05] | [0xb8, NUMBER, 0, 0, 0, 0x0f, 0x05, ..])
            | ([0x48, 0xc7, 0xc0, NUMBER, 0, 0, 0] | [.., 0xb8, NUMBER, 0, 0, 0], [0x0f, 0x05, ..])
    )
}
