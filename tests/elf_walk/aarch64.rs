//! What differs on aarch64.

use super::Position;

/// The DWARF numbers of SP and FP.
pub(super) const SP: usize = 31;
pub(super) const FP: usize = 29;

/// Stores where it returns to, and SP and FP as they are then.
#[unsafe(naked)]
pub(super) extern "C" fn capture(position: *mut Position) {
    std::arch::naked_asm!("str x30, [x0]", "mov x1, sp", "str x1, [x0, #8]", "str x29, [x0, #16]", "ret")
}

/// Compilers keep the frame pointer where they realign a stack here.
pub(super) fn walks_through_realigned_stack(_call_back: extern "C" fn()) -> Option<usize> {
    None
}
