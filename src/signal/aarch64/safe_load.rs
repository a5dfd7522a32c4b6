//! The loads of [`super`], for aarch64.
//!
//! Each gives the value and, in x9, whether it was loaded: what clears x9 is `Registers::fail_load`.

use std::arch::asm;

macro_rules! load {
    ($name:ident, $instruction:literal) => {
        /// Loads from `address`.
        #[inline(always)]
        pub(super) unsafe fn $name(address: u64) -> (u64, u64) {
            let value: u64;
            let mut is_loaded: u64 = 1;
            // SAFETY: a load that may fault is the caller's to allow; nothing is written but the entry, in a section of
            // its own, that finds this place.
            unsafe {
                asm!(
                    concat!("2: ", $instruction),
                    "3:",
                    ".pushsection otlpprof_loads, \"aR\", %progbits",
                    ".balign 4",
                    ".long 2b - .",
                    ".long 3b - .",
                    ".popsection",
                    address = in(reg) address,
                    value = lateout(reg) value,
                    inlateout("x9") is_loaded,
                    options(nostack, preserves_flags, readonly),
                );
            }
            (value, is_loaded)
        }
    };
}

load!(load_u64, "ldr {value}, [{address}]");
load!(load_u32, "ldr {value:w}, [{address}]");
load!(load_u16, "ldrh {value:w}, [{address}]");
load!(load_u8, "ldrb {value:w}, [{address}]");
