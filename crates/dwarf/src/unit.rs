//! One unit: rows at which the chain of functions, the file, the line or the column changes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use gimli::{DebugInfo, Dwarf, EndianSlice, RunTimeEndian, UnitRef, UnitType};

use super::allowance::Allowance;
use super::error::{DwarfError, Problem};
use super::functions::{FunctionReader, Functions, NO_FUNCTION, Subroutine};
use super::heads::Heads;
use super::limits;
use super::lines::{SourcePosition, read_lines};
use super::names::{Names, Target};
use super::owners::is_wanted;
use super::ranges;
use super::sections::Bytes;
use super::split::Split;
use super::stream::UnitBytes;
use super::texts::SharedTexts;

/// The rows of a unit.
pub(super) struct UnitRows {
    /// The unit's offset in `.debug_info`.
    pub(super) offset: u64,
    /// The addresses that the unit claims.
    pub(super) ranges: Vec<Range<u64>>,
    /// The functions that the rows name by their numbers.
    pub(super) functions: Vec<Subroutine>,
    /// The rows, in ascending order of their addresses.
    pub(super) rows: Vec<LineRow>,
}

/// The state of addresses from this one to the next row's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineRow {
    /// The first address.
    pub(super) address: u64,
    /// The number of the innermost function.
    pub(super) function: u32,
    /// The place in the innermost function.
    pub(super) place: SourcePosition,
}

/// Everything but the unit itself that its reading needs. Shared by all threads.
pub(super) struct Shared<'a> {
    pub(super) dwarf: &'a Dwarf<Bytes<'a>>,
    pub(super) endian: RunTimeEndian,
    pub(super) split: Split<'a>,
    pub(super) code: &'a [Range<u64>],
    /// The ranges of `.debug_aranges`, by unit.
    pub(super) aranges: &'a HashMap<u64, Vec<Range<u64>>>,
    /// The addresses that are looked for, in ascending order; all, if there is no list.
    pub(super) wanted: Option<&'a [u64]>,
    pub(super) texts: &'a SharedTexts,
    pub(super) allowance: &'a Allowance,
    pub(super) problems: &'a Problems,
}

/// The losses of all units: the first ones, and their number.
#[derive(Debug, Default)]
pub(super) struct Problems(Mutex<(Vec<Problem>, usize)>);

impl Problems {
    /// Adds a loss.
    pub(super) fn add(&self, unit: u64, why: DwarfError) {
        let mut problems = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        problems.1 += 1;
        if problems.0.len() < limits::PROBLEMS {
            problems.0.push(Problem { unit, why });
        }
    }

    /// The first losses in the order of their units, and the number of all.
    pub(super) fn into_inner(self) -> (Vec<Problem>, usize) {
        let (mut first, all) = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        first.sort_by_key(|problem| problem.unit);
        (first, all)
    }
}

impl Shared<'_> {
    /// Reads a unit. Returns nothing for a unit without code, or without one of the wanted addresses.
    ///
    /// # Errors
    /// If the unit is malformed as a whole. Losses of a part are added to the problems.
    pub(super) fn read_unit(
        &self,
        bytes: &UnitBytes,
        heads: &mut Heads<'_>,
    ) -> Result<Option<UnitRows>, DwarfError> {
        let offset = bytes.offset;
        let slice = EndianSlice::new(&bytes.bytes, self.endian);
        let Some(header) = DebugInfo::from(slice).units().next()? else { return Ok(None) };
        if !matches!(header.type_(), UnitType::Compilation | UnitType::Skeleton(_)) {
            return Ok(None);
        }
        // The sections live longer than the unit's bytes.
        let dwarf: &Dwarf<Bytes<'_>> = self.dwarf;
        let unit = heads.unit(dwarf, header)?;
        let unit = UnitRef::new(dwarf, &unit);
        let ranges = match self.aranges.get(&offset) {
            Some(ranges) => ranges.clone(),
            None => ranges::of_unit(unit, self.allowance)?,
        };
        if ranges.is_empty() || self.wanted.is_some_and(|wanted| !is_wanted(wanted, &ranges)) {
            return Ok(None);
        }
        if let Some(program) = &unit.line_program {
            self.allowance.take_lines(program.header().unit_length() as u64)?;
        }
        let mut lines = read_lines(unit, self.code, self.wanted, self.texts)?;
        if let Some(why) = lines.cut.take() {
            self.problems.add(offset, why);
        }
        let places = std::mem::take(&mut lines.steps);
        let mut file = |index| lines.files.number(index, self.texts);
        let read = self.split.with_unit(unit, |unit, is_split| {
            let home: Option<fn(u64) -> Target> = if is_split { None } else { Some(Target::Main) };
            let names = Names::new(unit, if is_split { 0 } else { offset }, home);
            let (code, wanted, allowance) = (self.code, self.wanted, self.allowance);
            FunctionReader { unit, file: &mut file, names, code, wanted, allowance }.read(self.texts)
        });
        let functions = read.unwrap_or_else(|why| {
            self.problems.add(offset, why);
            Functions { functions: Vec::new(), steps: Vec::new() }
        });
        let rows = rows(&functions.steps, &places);
        self.allowance.take_result(functions.functions.len(), rows.len())?;
        Ok(Some(UnitRows { offset, ranges, functions: functions.functions, rows }))
    }
}

/// Puts functions and places together.
fn rows(functions: &[(u64, u32)], places: &[(u64, SourcePosition)]) -> Vec<LineRow> {
    let mut rows: Vec<LineRow> = Vec::with_capacity(functions.len() + places.len());
    let (mut functions, mut places) = (functions.iter().peekable(), places.iter().peekable());
    let (mut function, mut place) = (NO_FUNCTION, SourcePosition::NONE);
    loop {
        let next = [functions.peek().map(|step| step.0), places.peek().map(|step| step.0)];
        let Some(address) = next.into_iter().flatten().min() else { return rows };
        while let Some(step) = functions.next_if(|step| step.0 == address) {
            function = step.1;
        }
        while let Some(step) = places.next_if(|step| step.0 == address) {
            place = step.1;
        }
        let row = LineRow { address, function, place };
        if rows.last().is_none_or(|last| (last.function, last.place) != (function, place)) {
            rows.push(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_begins_where_function_or_place_changes() {
        let place = |line| SourcePosition { file: 0, line, column: 1 };
        let found = rows(
            &[(0, 7), (10, 8), (20, NO_FUNCTION)],
            &[(2, place(1)), (5, place(1)), (10, place(2)), (25, SourcePosition::NONE)],
        );
        let found: Vec<_> = found.iter().map(|row| (row.address, row.function, row.place.line)).collect();
        assert_eq!(found, [(0, 7, 0), (2, 7, 1), (10, 8, 2), (20, NO_FUNCTION, 2), (25, NO_FUNCTION, 0)]);
    }
}
