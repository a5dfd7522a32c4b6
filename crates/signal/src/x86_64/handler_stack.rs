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
        "endbr64",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "mov rsp, rdi",
        "mov rdi, rdx",
        "call rsi",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
    )
}

/// The interrupted stack pointer.
pub(super) fn stack_pointer(context: &libc::ucontext_t) -> usize {
    context.uc_mcontext.gregs.get(libc::REG_RSP as usize).map_or(0, |sp| *sp as usize)
}
