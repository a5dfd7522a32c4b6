//! The code of a compiled method's deoptimisation handlers.
//!
//! A frame that is to be deoptimised returns to a handler in its method's stubs. The handler makes its own
//! entry the return address and leaves for the deoptimisation blob. How it does so differs between
//! compilers and releases (emit_deopt_handler in `cpu/*/c1_LIRAssembler_*.cpp`, `cpu/x86/x86.ad` and
//! `cpu/aarch64/aarch64.ad`), so the code is followed to its end. Two readers do so: `jvm::layout` recognises
//! handlers by it, and a walker finds the state of a method that was interrupted in a handler.
//!
//! | Module | Duty |
//! |---|---|
//! | [`aarch64`], [`x86_64`] | the way out of the code on each architecture |

use crate::address::CodeRange;
use crate::memory::Memory;

pub mod aarch64;
pub mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64 as native;
#[cfg(target_arch = "x86_64")]
pub use x86_64 as native;

/// The most instructions of a handler: a call, a jump, and an address of up to four moves.
const MAX_INSTRUCTIONS: usize = 8;

/// A place in a method's stubs, with the registers on which the way out depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// The address of the next instruction.
    pub pc: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The register of [`native::REGISTER`].
    pub register: u64,
}

/// The state in which code has left a method's stubs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The return address that the other code finds.
    pub return_address: u64,
    /// The stack pointer without the return address.
    pub sp: u64,
}

/// Whether the code at `entry` is a handler: it leaves `stubs` with `entry` as the return address, and with
/// nothing else on the stack.
pub fn is_handler<M: Memory + ?Sized>(memory: &M, stubs: CodeRange, entry: u64) -> bool {
    let left = native::way_out(memory, stubs, Interrupted { pc: entry, sp: 0, register: 0 });
    left == Some(Left { return_address: entry, sp: 0 })
}
