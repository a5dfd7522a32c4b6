//! The loads of [`super`], for x86_64.
//!
//! Each function begins with its load, so a fault's program counter equals the function's address. The value is
//! returned in rax, success in rdx (System V psABI 3.2.3: a struct of two integers).

use super::Loaded;
use std::arch::naked_asm;

macro_rules! load {
    ($name:ident, $instruction:literal) => {
        /// Loads from `address`.
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name(address: u64) -> Loaded {
            naked_asm!(".cfi_startproc", $instruction, "mov edx, 1", "ret", ".cfi_endproc")
        }
    };
}

load!(load_u64, "mov rax, [rdi]");
load!(load_u32, "mov eax, [rdi]");
load!(load_u16, "movzx eax, word ptr [rdi]");
load!(load_u8, "movzx eax, byte ptr [rdi]");

#[unsafe(naked)]
unsafe extern "C" fn failed() -> Loaded {
    naked_asm!(".cfi_startproc", "xor eax, eax", "xor edx, edx", "ret", ".cfi_endproc")
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
