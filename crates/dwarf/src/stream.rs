//! Cuts `.debug_info` into units while it is decompressed (DWARF 5, section 7.5.1).

use std::ops::Range;

use gimli::RunTimeEndian;

use super::error::DwarfError;
use super::limits;
use super::object::{Object, SectionReader};
use super::sections::endian;

/// The bytes of a unit, its header included.
pub(super) struct UnitBytes {
    /// The unit's offset in `.debug_info`.
    pub(super) offset: u64,
    /// The bytes.
    pub(super) bytes: Vec<u8>,
}

/// The fate of a unit.
pub(super) enum Choice {
    /// The unit is read.
    Take,
    /// The unit is skipped.
    Skip,
    /// The unit and all units after it are left unread.
    Stop,
}

/// Visits the units of a file's `.debug_info` in order. `choose` decides by a unit's place, and `take`
/// returns whether to go on.
///
/// # Errors
/// If the section is damaged, or a unit is too long.
pub(super) fn each_unit(
    object: &Object<'_>,
    mut choose: impl FnMut(Range<u64>) -> Choice,
    mut take: impl FnMut(UnitBytes) -> bool,
) -> Result<(), DwarfError> {
    let Some(section) = object.section(".debug_info")? else { return Ok(()) };
    let mut reader = object.reader(&section)?;
    let len = reader.len();
    if len > limits::SECTION_STREAMED {
        let (section, limit) = (reader.name().to_owned(), limits::SECTION_STREAMED);
        return Err(DwarfError::SectionTooLong { section, len, limit });
    }
    let mut offset = 0;
    while offset < len {
        let (head, unit_len) = read_length(&mut reader, endian(object), offset, len)?;
        let rest = unit_len - head.len() as u64;
        match choose(offset..offset + unit_len) {
            Choice::Stop => return Ok(()),
            Choice::Skip => reader.skip(rest)?,
            Choice::Take => {
                if unit_len > limits::UNIT {
                    return Err(DwarfError::UnitTooLong { offset, len: unit_len });
                }
                let mut bytes = head;
                // The longest unit that is allocated before its bytes have been seen.
                bytes.reserve(rest.min(1 << 20) as usize);
                reader.append(&mut bytes, rest)?;
                if !take(UnitBytes { offset, bytes }) {
                    return Ok(());
                }
            }
        }
        offset += unit_len;
    }
    Ok(())
}

/// Reads the initial length of a unit: its bytes, and the length of the unit with them.
fn read_length(
    reader: &mut SectionReader<'_>,
    endian: RunTimeEndian,
    offset: u64,
    len: u64,
) -> Result<(Vec<u8>, u64), DwarfError> {
    use gimli::Endianity as _;
    /// The escape to 64-bit DWARF. The fifteen values below it are reserved.
    const DWARF_64: u32 = 0xffff_ffff;
    const RESERVED: u32 = 0xffff_fff0;
    let left = len - offset;
    let mut head = vec![0; left.min(4) as usize];
    reader.fill(&mut head)?;
    let short = match head.first_chunk::<4>() {
        Some(bytes) => endian.read_u32(bytes),
        None => return Err(DwarfError::UnitOutside { offset, len: left }),
    };
    let declared = match short {
        DWARF_64 if left >= 12 => {
            head.resize(12, 0);
            reader.fill(&mut head[4..])?;
            endian.read_u64(&head[4..])
        }
        RESERVED.. => return Err(DwarfError::UnitOutside { offset, len: u64::from(short) }),
        _ => u64::from(short),
    };
    let unit_len = declared.checked_add(head.len() as u64).filter(|&unit_len| unit_len <= left);
    Ok((head, unit_len.ok_or(DwarfError::UnitOutside { offset, len: declared })?))
}
