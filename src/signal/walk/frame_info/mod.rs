//! Call frame information read in place: the rule for one address, out of a mapped `.eh_frame`.
//!
//! A walk needs this for as long as an object's table is not compiled: at the start of a process, and for a moment when
//! a library has been loaded. A look-up costs about a microsecond; the table's, tens of nanoseconds. Both read the same
//! bytes and say the same (`tests/elf_unwind.rs` compares them over whole libraries).
//!
//! Found through the search table of `.eh_frame_hdr` (Linux Standard Base 5.0, "Exception Frames"), which linkers write
//! sorted, as pairs of 32-bit offsets. What has another form gives no rule, as has code without a description.
//!
//! | Module | Duty |
//! |---|---|
//! | [`reader`] | bounded reading of a section: integers, encoded pointers |
//! | [`description`] | an address's FDE and its CIE |
//! | [`program`] | the instructions up to the address |
//! | [`expression`] | the operations of an expression |

mod description;
mod expression;
mod program;
mod reader;

use crate::core::frame_rules::{UNSUPPORTED, native};
use crate::core::memory::Memory;
use crate::core::unwind::UnwindRule;

/// The rule at run-time address `pc`, by the `.eh_frame_hdr` at run-time address `header`. `None` if nothing describes
/// `pc`; a description that cannot be followed gives [`UNSUPPORTED`].
pub fn rule_at<M: Memory>(memory: &M, header: u64, pc: u64) -> Option<UnwindRule> {
    let description = description::find(memory, header, pc)?;
    let architecture = &native::ARCHITECTURE;
    let row = program::row_at(&description, architecture, pc);
    Some(row.map_or(UNSUPPORTED, |row| architecture.rule(&row)))
}
