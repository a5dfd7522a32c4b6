//! Address ranges of units, and lists of ranges. The sums of numbers of a file are checked: gimli's
//! `die_ranges` and `attr_ranges` add them unchecked.

use std::ops::Range;

use gimli::{AttributeValue, RangeListsOffset, Reader as _, RngListIter, Section as _, UnitRef};

use super::allowance::Allowance;
use super::error::DwarfError;
use super::sections::Bytes;

/// The ranges of a unit's root entry. A list precedes a start and an end.
///
/// # Errors
/// If the entry or its list is malformed, if the unit ends after the last address, or if lists of ranges are
/// read too often.
pub(super) fn of_unit(
    unit: UnitRef<'_, Bytes<'_>>,
    allowance: &Allowance,
) -> Result<Vec<Range<u64>>, DwarfError> {
    let mut entries = unit.entries();
    let root = entries.next_dfs()?.ok_or(gimli::Error::MissingUnitDie)?;
    if let Some(value) = root.attr_value(gimli::DW_AT_ranges)
        && let Some(mut list) = list(unit, value)?
    {
        let mut ranges = Vec::new();
        while let Some(range) = list.next()? {
            allowance.take_range()?;
            ranges.push(range.begin..range.end);
        }
        return Ok(ranges);
    }
    let (Some(low), Some(high)) =
        (root.attr_value(gimli::DW_AT_low_pc), root.attr_value(gimli::DW_AT_high_pc))
    else {
        return Ok(Vec::new());
    };
    let Some(start) = unit.attr_address(low)? else { return Ok(Vec::new()) };
    let end = match high {
        AttributeValue::Udata(len) => Some(start.checked_add(len).ok_or(gimli::Error::AddressOverflow)?),
        value => unit.attr_address(value)?,
    };
    Ok(end.map(|end| start..end).into_iter().collect())
}

/// The list of ranges that an attribute of a unit's entry names, if it names one.
///
/// # Errors
/// If the list is not in its section.
pub(super) fn list<'a>(
    unit: UnitRef<'_, Bytes<'a>>,
    value: AttributeValue<Bytes<'a>>,
) -> Result<Option<RngListIter<Bytes<'a>>>, gimli::Error> {
    let AttributeValue::DebugRngListsIndex(index) = value else { return unit.attr_ranges(value) };
    // A table of offsets, which are relative to the table (DWARF 5, section 7.28).
    let (format, base) = (unit.encoding().format, unit.rnglists_base.0);
    let entry = index.0.checked_mul(usize::from(format.word_size()));
    let mut table = *unit.dwarf.ranges.debug_rnglists().reader();
    table.skip(base)?;
    table.skip(entry.ok_or(gimli::Error::UnsupportedOffset)?)?;
    let offset = base.checked_add(table.read_offset(format)?);
    let offset = RangeListsOffset(offset.ok_or(gimli::Error::UnsupportedOffset)?);
    unit.ranges(offset).map(Some)
}
