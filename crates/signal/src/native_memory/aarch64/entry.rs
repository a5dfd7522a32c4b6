//! The entry of a stand-in, which passes on the function's arguments and the place of its caller's frame.

/// Defines the function `$name`. It calls `$stand_in` with its own arguments, six at most, and a pointer to
/// the saved frame pointer and the return address, the frame record of AAPCS64.
macro_rules! entry {
    ($name:ident => $stand_in:path) => {
        #[unsafe(naked)]
        extern "C" fn $name() {
            std::arch::naked_asm!(
                ".cfi_startproc",
                "hint #34",
                "stp x29, x30, [sp, #-16]!",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset w30, -8",
                ".cfi_offset w29, -16",
                "mov x29, sp",
                "mov x6, sp",
                "bl {stand_in}",
                "ldp x29, x30, [sp], #16",
                ".cfi_def_cfa_offset 0",
                ".cfi_restore w30",
                ".cfi_restore w29",
                "ret",
                ".cfi_endproc",
                stand_in = sym $stand_in,
            )
        }
    };
}

pub(super) use entry;
