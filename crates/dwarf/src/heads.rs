//! The heads of units: the abbreviations, the root entry, and the head of the line table, which gimli reads
//! before anything else of a unit. Units may share them, so that a file of some megabytes can declare heads
//! of terabytes.

use std::sync::Arc;

use gimli::{Abbreviations, DebugAbbrev, DebugAbbrevOffset, Dwarf, Section as _, Unit, UnitHeader};

use super::allowance::Allowance;
use super::error::DwarfError;
use super::limits;
use super::sections::Bytes;

/// Reads the heads of units of one file.
pub(super) struct Heads<'r> {
    allowance: &'r Allowance,
    /// The abbreviations that were read last. The units of one link-time optimisation share theirs.
    last: Option<(DebugAbbrevOffset, Arc<Abbreviations>)>,
}

impl<'r> Heads<'r> {
    /// A reader within this allowance.
    pub(super) fn within(allowance: &'r Allowance) -> Self {
        Self { allowance, last: None }
    }

    /// The unit with this header.
    ///
    /// # Errors
    /// If the head is malformed, or units share their heads too often.
    pub(super) fn unit<'a>(
        &mut self,
        dwarf: &Dwarf<Bytes<'a>>,
        header: UnitHeader<Bytes<'a>>,
    ) -> Result<Unit<Bytes<'a>>, DwarfError> {
        let abbreviations = self.abbreviations(&dwarf.debug_abbrev, header.debug_abbrev_offset())?;
        let unit = Unit::new_with_abbreviations(dwarf, header, abbreviations)?;
        if let Some(program) = &unit.line_program {
            self.allowance.take_head(program.header().header_length() as u64)?;
        }
        Ok(unit)
    }

    /// The abbreviations at this offset.
    ///
    /// # Errors
    /// If they are malformed, have an entry of too many attributes, or if units share their heads too often.
    pub(super) fn abbreviations(
        &mut self,
        section: &DebugAbbrev<Bytes<'_>>,
        offset: DebugAbbrevOffset,
    ) -> Result<Arc<Abbreviations>, DwarfError> {
        // A unit with known abbreviations has a line table too, whose head is read before it can be refused.
        self.allowance.take_head(1)?;
        if let Some((_, last)) = self.last.as_ref().filter(|(last, _)| *last == offset) {
            return Ok(Arc::clone(last));
        }
        let table = section.reader().slice().get(offset.0..).unwrap_or_default();
        self.allowance.take_head(table_len(table)?)?;
        let abbreviations = Arc::new(section.abbreviations(offset)?);
        self.last = Some((offset, Arc::clone(&abbreviations)));
        Ok(abbreviations)
    }
}

/// The length of the abbreviations at the begin of these bytes (DWARF 5, section 7.5.3). A table that is cut
/// has all bytes.
///
/// # Errors
/// If an entry has too many attributes. Attributes need not have bytes, so that an entry of one byte may have
/// any number.
fn table_len(bytes: &[u8]) -> Result<u64, DwarfError> {
    const IMPLICIT_CONST: u64 = gimli::DW_FORM_implicit_const.0 as u64;
    let mut left = bytes;
    // The table ends with the code 0.
    while let Some(1..) = number(&mut left) {
        // The tag, and the byte that tells whether there are children.
        let _ = (number(&mut left), left.split_off_first());
        let mut attributes = 0;
        while let Some((name, form)) = number(&mut left).zip(number(&mut left)) {
            if (name, form) == (0, 0) {
                break;
            }
            if form == IMPLICIT_CONST {
                number(&mut left);
            }
            attributes += 1;
            if attributes > limits::ATTRIBUTES {
                return Err(DwarfError::Attributes);
            }
        }
    }
    Ok((bytes.len() - left.len()) as u64)
}

/// Takes a LEB128 number. The upper bits of a number of more than 64 bits are lost.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let byte = *bytes.split_off_first()?;
        number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or_default();
        if byte < 0x80 {
            break;
        }
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_ends_with_the_code_0() {
        // Two abbreviations. The second one has an attribute whose constant is in the table (implicit_const).
        let table = [1, 0x11, 1, 0x03, 0x08, 0, 0, 2, 0x2e, 0, 0x3a, 0x21, 0xff, 0x7f, 0, 0, 0];
        assert_eq!(table_len(&[&table[..], &[9; 30]].concat()).unwrap(), table.len() as u64);
        for cut in 0..table.len() {
            assert_eq!(table_len(&table[..cut]).unwrap(), cut as u64);
        }
    }
}
