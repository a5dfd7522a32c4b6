//! Moves the stack pointer to another stack and back.

use std::ffi::c_void;

/// Calls `function(argument)` on the stack that ends below `top`, a multiple of 16. Debuggers can walk from
/// that stack to the caller's.
///
/// # Safety
/// No other code uses the stack until the call returns; `function` is an `extern "C" fn` that takes
/// `argument`.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn call_on_stack(top: usize, function: *const c_void, argument: *mut c_void) {
    std::arch::naked_asm!(
        ".cfi_startproc",
        "hint #34",
        "stp x29, x30, [sp, #-16]!",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset w30, -8",
        ".cfi_offset w29, -16",
        "mov x29, sp",
        ".cfi_def_cfa_register w29",
        "mov sp, x0",
        "mov x0, x2",
        "blr x1",
        "mov sp, x29",
        ".cfi_def_cfa_register wsp",
        "ldp x29, x30, [sp], #16",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore w30",
        ".cfi_restore w29",
        "ret",
        ".cfi_endproc",
    )
}

/// The interrupted stack pointer.
pub(super) fn stack_pointer(context: &libc::ucontext_t) -> usize {
    context.uc_mcontext.sp as usize
}
