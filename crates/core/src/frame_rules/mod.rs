//! Converts one row of call frame information to one [`UnwindRule`](super::unwind_rule::UnwindRule).
//!
//! Two readers produce such rows: `elf::unwind` compiles an object's whole `.eh_frame` to a table, and until
//! that table exists, `signal::walk::frame_info` reads a single description in place. The meaning of a row is
//! defined only here.
//!
//! | Module | Duty |
//! |---|---|
//! | `row` | one row of call frame information, in the form that both readers produce |
//! | `architecture` | the conversion of a row, with the parameters that differ between architectures |
//! | [`aarch64`], [`x86_64`] | the rules of DWARF on each architecture |

pub mod aarch64;
mod architecture;
mod row;
pub mod x86_64;

pub use architecture::{Architecture, END_OF_STACK, UNSUPPORTED};
pub use row::{Op, Ops, Register, RowCfa, RowRegister, RuleRow};

#[cfg(target_arch = "aarch64")]
pub use aarch64 as native;
#[cfg(target_arch = "x86_64")]
pub use x86_64 as native;
