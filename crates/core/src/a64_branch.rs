//! The branches of A64, the instruction set of aarch64, and `adr`, whose address is also a distance away (Arm
//! Architecture Reference Manual, C4.1.93, "Branches, Exception Generating and System instructions").

/// The size of each instruction.
pub const INSTRUCTION_BYTES: u64 = 4;
/// `ret`, which returns to the address in x30.
pub const RET: u32 = 0xd65f_03c0;

/// The number of x30, in which a call leaves its return address.
const LINK_REGISTER: u32 = 30;

/// An instruction after which another than the next one may be executed. A distance is in bytes from the
/// branch, a register is given by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// `b`
    Jump {
        /// The distance of the target.
        distance: i64,
    },
    /// `bl`
    Call {
        /// The distance of the callee.
        distance: i64,
    },
    /// `b.cond`, `cbz`, `cbnz`, `tbz`, `tbnz`
    Conditional {
        /// The distance of the target.
        distance: i64,
    },
    /// `br`
    RegisterJump {
        /// The register that holds the target.
        register: u32,
    },
    /// `blr`
    RegisterCall,
    /// `ret`, and `retaa` and `retab`, which authenticate x30.
    Return {
        /// The register that holds the return address.
        register: u32,
    },
}

impl Branch {
    /// The branch that the instruction is, if any.
    pub const fn of(instruction: u32) -> Option<Self> {
        let register = instruction >> 5 & 0x1f;
        Some(match instruction {
            _ if instruction & 0xfc00_0000 == 0x1400_0000 => {
                Self::Jump { distance: distance_26(instruction) }
            }
            _ if instruction & 0xfc00_0000 == 0x9400_0000 => {
                Self::Call { distance: distance_26(instruction) }
            }
            // b.cond; cbz and cbnz.
            _ if instruction & 0xff00_0000 == 0x5400_0000 || instruction & 0x7e00_0000 == 0x3400_0000 => {
                Self::Conditional { distance: distance_19(instruction) }
            }
            // tbz and tbnz.
            _ if instruction & 0x7e00_0000 == 0x3600_0000 => {
                Self::Conditional { distance: distance_14(instruction) }
            }
            _ if instruction & 0xffff_fc1f == 0xd61f_0000 => Self::RegisterJump { register },
            _ if instruction & 0xffff_fc1f == 0xd63f_0000 => Self::RegisterCall,
            _ if instruction & 0xffff_fc1f == 0xd65f_0000 => Self::Return { register },
            // retaa; retab.
            0xd65f_0bff | 0xd65f_0fff => Self::Return { register: LINK_REGISTER },
            _ => return None,
        })
    }

    /// Whether the branch is taken whenever it is executed.
    pub const fn is_unconditional(self) -> bool {
        !matches!(self, Self::Conditional { .. })
    }

    /// Whether the branch is a call.
    pub const fn is_call(self) -> bool {
        matches!(self, Self::Call { .. } | Self::RegisterCall)
    }
}

/// The distance of the address that the instruction puts into this register, if it is an `adr` of the
/// register.
pub const fn adr_distance(instruction: u32, register: u32) -> Option<i64> {
    if instruction & 0x9f00_001f != 0x1000_0000 | register {
        return None;
    }
    // The two lowest bits are near the top of the instruction.
    Some(distance_19(instruction) | (instruction >> 29 & 3) as i64)
}

/// The distance of a `b` or `bl`: 26 bits, in instructions.
const fn distance_26(instruction: u32) -> i64 {
    ((instruction << 6).cast_signed() >> 6 << 2) as i64
}

/// The distance of a `b.cond`, `cbz` or `cbnz`: 19 bits, in instructions.
const fn distance_19(instruction: u32) -> i64 {
    ((instruction << 8).cast_signed() >> 13 << 2) as i64
}

/// The distance of a `tbz` or `tbnz`: 14 bits, in instructions.
const fn distance_14(instruction: u32) -> i64 {
    ((instruction << 13).cast_signed() >> 18 << 2) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_ahead_or_behind() {
        for (instruction, branch) in [
            (0x1400_0002, Branch::Jump { distance: 8 }),
            (0x17ff_ffff, Branch::Jump { distance: -4 }),
            (0x15ff_ffff, Branch::Jump { distance: 0x07ff_fffc }),
            (0x1600_0000, Branch::Jump { distance: -0x0800_0000 }),
            (0x9400_0002, Branch::Call { distance: 8 }),
            (0x97ff_fffe, Branch::Call { distance: -8 }),
            // b.lo; b.hi; cbz w8; cbnz x8; tbz w8, 0; tbnz x8, 63.
            (0x5400_0043, Branch::Conditional { distance: 8 }),
            (0x54ff_ffe8, Branch::Conditional { distance: -4 }),
            (0x347f_ffe8, Branch::Conditional { distance: 0x000f_fffc }),
            (0xb580_0008, Branch::Conditional { distance: -0x0010_0000 }),
            (0x3603_ffe8, Branch::Conditional { distance: 0x7ffc }),
            (0xb7fc_0008, Branch::Conditional { distance: -0x8000 }),
        ] {
            assert_eq!(Branch::of(instruction), Some(branch), "{instruction:x}");
        }
    }

    #[test]
    fn registers_hold_targets_and_return_addresses() {
        for (instruction, branch) in [
            // br x8; blr x8; ret; ret x8; retaa; retab.
            (0xd61f_0100, Branch::RegisterJump { register: 8 }),
            (0xd63f_0100, Branch::RegisterCall),
            (RET, Branch::Return { register: 30 }),
            (0xd65f_0100, Branch::Return { register: 8 }),
            (0xd65f_0bff, Branch::Return { register: 30 }),
            (0xd65f_0fff, Branch::Return { register: 30 }),
        ] {
            assert_eq!(Branch::of(instruction), Some(branch), "{instruction:x}");
        }
    }

    #[test]
    fn other_instructions_are_no_branches() {
        // No instruction; nop; svc 0; brk 0; adr x8; ldr x8, [x28]; stp x29, x30, [sp, -16]!.
        let others = [0, 0xd503_201f, 0xd400_0001, 0xd420_0000, 0x1000_0008, 0xf940_0388, 0xa9bf_7bfd];
        assert!(others.iter().all(|&instruction| Branch::of(instruction).is_none()));
    }

    #[test]
    fn an_adr_counts_bytes_from_itself() {
        // adr x30, itself; adr x30, 6; adr x30, -4; adr x3, 8.
        assert_eq!(adr_distance(0x1000_001e, 30), Some(0));
        assert_eq!(adr_distance(0x5000_003e, 30), Some(6));
        assert_eq!(adr_distance(0x10ff_fffe, 30), Some(-4));
        assert_eq!(adr_distance(0x1000_0043, 3), Some(8));
        // Another register, and adrp.
        assert_eq!(adr_distance(0x1000_0043, 30), None);
        assert_eq!(adr_distance(0x9000_0008, 8), None);
    }
}
