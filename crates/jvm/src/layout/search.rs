//! Finds the place of a field that libjvm does not describe: the only place in its structure with which the
//! whole layout passes its checks.
//!
//! Releases export fewer fields, or give fields other names, than those before them did. A search serves for
//! fields whose values the checks compare with other facts. Of a field with a value that others have as well
//! several places pass: such a field stays missing.

use super::error::LayoutError;
use super::learnt::{Found, Learnt};
use crate::vm_structs::VmStructs;

/// The largest structure to search, in bytes. A JavaThread has some 2,000.
const MAX_BYTES: u32 = 1 << 13;
/// The alignment of fields, in bytes.
const ALIGNMENT: usize = 4;
/// The structures whose fields are indices of two bytes, and their alignment.
const WITH_INDICES: [&str; 2] = ["ConstMethod", "Symbol"];
const INDEX_ALIGNMENT: usize = 2;

/// Calls `learn` with the missing field of `error` at each place, and returns the only layout.
///
/// # Errors
/// `error`, if it is not about a missing field, or if none or several places pass.
pub(super) fn for_missing(
    structs: &VmStructs,
    error: LayoutError,
    learn: impl Fn(&VmStructs) -> Result<Learnt, LayoutError>,
) -> Result<Learnt, LayoutError> {
    let LayoutError::MissingField { structure, field } = error else { return Err(error) };
    let Ok(size) = structs.size_of(structure) else { return Err(error) };
    let alignment = if WITH_INDICES.contains(&structure) { INDEX_ALIGNMENT } else { ALIGNMENT };
    let mut tried = structs.clone();
    let mut passing = (0..size.min(MAX_BYTES)).step_by(alignment).filter_map(|offset| {
        tried.set_offset(structure, field, offset);
        let learnt = learn(&tried).ok()?;
        Some(Learnt { found: vec![Found { structure, field, offset }], ..learnt })
    });
    match (passing.next(), passing.next()) {
        (Some(learnt), None) => Ok(learnt),
        _ => Err(error),
    }
}
