//! The rule by which a frame's caller is found: one row of an unwind table.

/// How to compute a frame's canonical frame address (CFA): the value of SP in the caller, right after the
/// call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CfaRule {
    /// `CFA = SP + offset`
    SpPlus(i32),
    /// `CFA = FP + offset` (rbp on x86_64, x29 on aarch64)
    FpPlus(i32),
    /// `CFA = register + offset`, with the DWARF register number of a register other than SP and FP. A walk
    /// knows the register's value at the interrupted frame; at other frames only if the functions called
    /// since then have saved the register.
    RegisterPlus(u8, i32),
    /// `CFA = *(FP + at) + offset`: the saved argument pointer of a realigned stack.
    FpDeref {
        /// Added to FP before the load.
        at: i16,
        /// Added to the loaded value.
        offset: i16,
    },
    /// `CFA = *(SP + at) + offset`: hand-written code that keeps the caller's SP in its frame.
    SpDeref {
        /// Added to SP before the load.
        at: i16,
        /// Added to the loaded value.
        offset: i16,
    },
    /// `CFA = *(SP + register * scale + at) + offset`: OpenSSL's and BoringSSL's multiplications keep the
    /// caller's SP after an array on the stack. The register's value is found as for
    /// [`CfaRule::RegisterPlus`].
    IndexedSpDeref {
        /// The DWARF register number of the index.
        register: u8,
        /// The factor of the index.
        scale: u8,
        /// Added to SP and the scaled index before the load.
        at: i16,
        /// Added to the loaded value.
        offset: i16,
    },
    /// `CFA = SP + 8 + ((PC & 15) >= threshold) * 8`: the lazy-binding PLT of x86_64.
    PltX86_64 {
        /// The offset of PC in its 16-byte entry from which on the index has been pushed onto the stack.
        threshold: u8,
    },
    /// The kernel's signal frame: all registers are in the `ucontext_t` at SP (aarch64: after the siginfo).
    SignalFrame,
    /// The return address is undefined: this frame is the thread's outermost.
    EndOfStack,
    /// Call frame information that exists but cannot be expressed as a rule.
    Unsupported,
}

/// The place of the caller's frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FpRule {
    /// Unchanged by this frame.
    Same,
    /// Saved at `CFA + offset`.
    AtCfaPlus(i32),
    /// Saved at `FP + offset`, with this frame's FP: a realigned stack, whose distance to the CFA varies.
    AtFpPlus(i32),
    /// Not recoverable.
    Undefined,
}

/// The place of the return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ReturnAddressRule {
    /// Saved at `CFA + offset`; always -8 for compiled x86_64 code.
    AtCfaPlus(i32),
    /// Still in the link register (aarch64 leaf frames).
    LinkRegister,
}

/// The three rules of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnwindRule {
    /// How to find the CFA.
    pub cfa: CfaRule,
    /// How to find the caller's frame pointer.
    pub fp: FpRule,
    /// How to find the return address.
    pub return_address: ReturnAddressRule,
}
