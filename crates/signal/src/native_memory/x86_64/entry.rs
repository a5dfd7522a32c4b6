//! The entry of a stand-in, which passes on the function's arguments and the place of its caller's frame.

/// Defines the function `$name`. It calls `$stand_in` with its own arguments, six at most, and a pointer to
/// the saved frame pointer and the return address. That seventh argument is on the stack (System V psABI for
/// x86_64, 3.2.3). The stack is aligned to 16 bytes at the call.
macro_rules! entry {
    ($name:ident => $stand_in:path) => {
        #[unsafe(naked)]
        extern "C" fn $name() {
            std::arch::naked_asm!(
                ".cfi_startproc",
                "endbr64",
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                "sub rsp, 8",
                "push rbp",
                "call {stand_in}",
                "leave",
                ".cfi_def_cfa rsp, 8",
                "ret",
                ".cfi_endproc",
                stand_in = sym $stand_in,
            )
        }
    };
}

pub(super) use entry;
