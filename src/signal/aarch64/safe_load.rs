//! The loads of [`super`], for aarch64.
//!
//! Each function begins with its load, so a fault's program counter equals the function's address. The value is
//! returned in x0, success in x1 (Procedure Call Standard for the Arm 64-bit Architecture, "Result Return": a struct of
//! two integers).

use super::Loaded;
use std::arch::naked_asm;

macro_rules! load {
    ($name:ident, $instruction:literal) => {
        /// Loads from `address`.
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name(address: u64) -> Loaded {
            naked_asm!($instruction, "mov x1, #1", "ret")
        }
    };
}

load!(load_u64, "ldr x0, [x0]");
load!(load_u32, "ldr w0, [x0]");
load!(load_u16, "ldrh w0, [x0]");
load!(load_u8, "ldrb w0, [x0]");

#[unsafe(naked)]
unsafe extern "C" fn failed() -> Loaded {
    naked_asm!("mov x0, #0", "mov x1, #0", "ret")
}

pub(super) fn exit_of(pc: u64) -> Option<u64> {
    let loads = [
        load_u64 as *const () as u64,
        load_u32 as *const () as u64,
        load_u16 as *const () as u64,
        load_u8 as *const () as u64,
    ];
    loads.contains(&pc).then_some(failed as *const () as u64)
}
