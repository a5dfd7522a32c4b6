//! The parts of the test that are specific to aarch64.

use super::Position;

/// The DWARF numbers of SP and FP.
pub(super) const SP: usize = 31;
pub(super) const FP: usize = 29;

/// Stores the return address, and the values of SP and FP after the return.
#[unsafe(naked)]
pub(super) extern "C" fn capture(position: *mut Position) {
    std::arch::naked_asm!("str x30, [x0]", "mov x1, sp", "str x1, [x0, #8]", "str x29, [x0, #16]", "ret")
}

/// On aarch64 compilers keep the frame pointer when they realign a stack, so there is nothing to test.
pub(super) fn walks_through_realigned_stack(_call_back: extern "C" fn()) -> Option<usize> {
    None
}
