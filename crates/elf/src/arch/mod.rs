//! Numbers from the processor supplements to the ELF ABI. [`x86_64`] and [`aarch64`] define the same names;
//! [`native`] is the module of this process's architecture.
//!
//! | Module | Duty |
//! |---|---|
//! | [`x86_64`] | numbers from the System V ABI, AMD64 supplement |
//! | [`aarch64`] | numbers from ELF for the Arm 64-bit Architecture |

pub mod aarch64;
pub mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64 as native;
#[cfg(target_arch = "x86_64")]
pub use x86_64 as native;
