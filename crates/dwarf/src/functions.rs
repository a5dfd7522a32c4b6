//! The functions of a unit and their address ranges.
//!
//! Ranges are laid over each other in the order of the entries, so that of nested functions the innermost
//! counts, and of functions with the same code the last one (LLVM's `DWARFUnit::updateAddressDieMap`).

use std::collections::BTreeMap;
use std::ops::Range;

use gimli::{Abbreviation, AttributeValue, EntriesRaw, UnitOffset, UnitRef};

use super::allowance::Allowance;
use super::error::DwarfError;
use super::limits;
use super::lines::SourcePosition;
use super::names::{Name, NameAttributes, Names, Value};
use super::owners::{is_wanted, starts_in};
use super::ranges;
use super::sections::Bytes;
use super::texts::SharedTexts;

/// The number that stands for no function.
pub(super) const NO_FUNCTION: u32 = u32::MAX;

/// A function, or one place at which it is inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subroutine {
    /// The number of the function that it is inlined into; a lower number.
    pub(super) caller: u32,
    /// Its name.
    pub(super) name: Name,
    /// The place of the call.
    pub(super) call: SourcePosition,
}

/// The functions of a unit.
pub(super) struct Functions {
    /// The functions.
    pub(super) functions: Vec<Subroutine>,
    /// The innermost function of each address: each with the address at which it begins, in ascending order.
    pub(super) steps: Vec<(u64, u32)>,
}

/// The end of an address range.
#[derive(Clone, Copy)]
enum End {
    Address(u64),
    Length(u64),
}

/// The attributes of a function's entry.
#[derive(Clone, Copy)]
struct Entry<'a> {
    is_inlined: bool,
    start: Option<u64>,
    end: Option<End>,
    ranges: Option<Value<'a>>,
    name: NameAttributes<'a>,
    call_file: u64,
    call_line: u32,
    call_column: u32,
}

/// A function whose children are being read.
struct Open<'a> {
    depth: isize,
    /// The offset of its entry in the unit.
    at: UnitOffset,
    /// Its attributes, if they have been read.
    entry: Option<Entry<'a>>,
    /// The function's number, once it is needed.
    number: Option<u32>,
    /// Whether it has code, and none of the code is wanted. Functions that are inlined into it are skipped.
    is_unwanted: bool,
}

/// Reads the functions of a unit.
pub(super) struct FunctionReader<'r, 'u, 'a> {
    /// The unit, which for split units is the one in the split file.
    pub(super) unit: UnitRef<'u, Bytes<'a>>,
    /// Gives the number of a file's path from its index in the line table.
    pub(super) file: &'r mut dyn FnMut(u64) -> Result<u32, DwarfError>,
    /// The finder of names.
    pub(super) names: Names<'u, 'a>,
    /// The file's code.
    pub(super) code: &'r [Range<u64>],
    /// The addresses that are looked for, in ascending order; all, if there is no list.
    pub(super) wanted: Option<&'r [u64]>,
    /// The allowance of the object.
    pub(super) allowance: &'r Allowance,
}

/// The state of a reader.
#[derive(Default)]
struct State<'a> {
    open: Vec<Open<'a>>,
    functions: Vec<Subroutine>,
    map: BTreeMap<u64, (u64, u32)>,
}

impl<'a> FunctionReader<'_, '_, 'a> {
    /// Reads the functions with code. Of a function without a wanted address, no inlined function is read:
    /// its code is a part of the function's.
    ///
    /// # Errors
    /// If an entry is malformed, or functions are nested too deeply.
    pub(super) fn read(mut self, texts: &SharedTexts) -> Result<Functions, DwarfError> {
        let mut state = State::default();
        let mut entries = self.unit.entries_raw(None)?;
        let mut ranges = Vec::new();
        while !entries.is_empty() {
            let depth = entries.next_depth();
            while state.open.last().is_some_and(|open| open.depth >= depth) {
                state.open.pop();
            }
            let at = entries.next_offset();
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            let is_skipped = match abbreviation.tag() {
                gimli::DW_TAG_subprogram => false,
                gimli::DW_TAG_inlined_subroutine => state.open.last().is_some_and(|open| open.is_unwanted),
                _ => true,
            };
            if is_skipped {
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
            if state.open.len() == limits::CHAIN {
                return Err(DwarfError::Nesting);
            }
            ranges.clear();
            let mut entry = None;
            if abbreviation.attributes().iter().any(|of| is_code(of.name())) {
                let read = self.read_entry(&mut entries, abbreviation)?;
                self.read_ranges(&read, &mut ranges)?;
                entry = Some(read);
            } else {
                entries.skip_attributes(abbreviation.attributes())?;
            }
            let is_unwanted =
                !ranges.is_empty() && self.wanted.is_some_and(|wanted| !is_wanted(wanted, &ranges));
            state.open.push(Open { depth, at, entry, number: None, is_unwanted });
            if !ranges.is_empty() && !is_unwanted {
                let number = self.number(&mut state, texts)?;
                ranges.iter().for_each(|range| lay(&mut state.map, range, number));
            }
        }
        Ok(Functions { functions: state.functions, steps: steps(&state.map) })
    }

    /// Reads the attributes of an entry whose abbreviation has been read.
    fn read_entry(
        &self,
        entries: &mut EntriesRaw<'_, Bytes<'a>>,
        abbreviation: &Abbreviation,
    ) -> Result<Entry<'a>, DwarfError> {
        let mut entry = Entry {
            is_inlined: abbreviation.tag() == gimli::DW_TAG_inlined_subroutine,
            start: None,
            end: None,
            ranges: None,
            name: NameAttributes::default(),
            call_file: 0,
            call_line: 0,
            call_column: 0,
        };
        for &specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(specification)?;
            let number = || attribute.udata_value().unwrap_or_default();
            let short = || u32::try_from(number()).unwrap_or(u32::MAX);
            match attribute.name() {
                gimli::DW_AT_low_pc => entry.start = self.address(attribute.value()),
                gimli::DW_AT_high_pc => {
                    entry.end = match attribute.value() {
                        AttributeValue::Udata(len) => Some(End::Length(len)),
                        value => self.address(value).map(End::Address),
                    };
                }
                gimli::DW_AT_ranges => entry.ranges = Some(attribute.value()),
                gimli::DW_AT_call_file => entry.call_file = number(),
                gimli::DW_AT_call_line => entry.call_line = short(),
                gimli::DW_AT_call_column => entry.call_column = short(),
                name => entry.name.take(name, attribute.raw_value()),
            }
        }
        Ok(entry)
    }

    /// Reads the attributes of the entry at this offset.
    fn entry_at(&self, at: UnitOffset) -> Result<Entry<'a>, DwarfError> {
        let mut entries = self.unit.entries_raw(Some(at))?;
        let abbreviation =
            entries.read_abbreviation()?.ok_or(gimli::Error::NoEntryAtGivenOffset(at.0 as u64))?;
        self.read_entry(&mut entries, abbreviation)
    }

    fn address(&self, value: Value<'a>) -> Option<u64> {
        self.unit.attr_address(value).ok().flatten()
    }

    /// The code of an entry. A start and an end precede a list of ranges, as in LLVM.
    fn read_ranges(&self, entry: &Entry<'a>, ranges: &mut Vec<Range<u64>>) -> Result<(), DwarfError> {
        let mut add = |start: u64, end: u64| {
            if start < end && !self.unit.header.is_tombstone_address(start) && starts_in(self.code, start) {
                ranges.push(start..end);
            }
        };
        if let (Some(start), Some(end)) = (entry.start, entry.end) {
            add(
                start,
                match end {
                    End::Address(end) => end,
                    End::Length(len) => start.saturating_add(len),
                },
            );
        } else if let Some(list) = entry.ranges
            && let Some(mut list) = ranges::list(self.unit, list)?
        {
            while let Some(range) = list.next()? {
                self.allowance.take_range()?;
                add(range.begin, range.end);
            }
        }
        Ok(())
    }

    /// The number of the innermost open function. Numbers those that it is inlined into first.
    fn number(&mut self, state: &mut State<'a>, texts: &SharedTexts) -> Result<u32, DwarfError> {
        let numbered = state.open.iter().rposition(|open| open.number.is_some());
        let first = numbered.map_or(0, |last| last + 1);
        let mut outer = numbered.and_then(|last| state.open[last].number).unwrap_or(NO_FUNCTION);
        for open in &mut state.open[first..] {
            let entry = match open.entry {
                Some(entry) => entry,
                None => self.entry_at(open.at)?,
            };
            let mut function = Subroutine {
                caller: NO_FUNCTION,
                name: self.names.of(&entry.name, texts)?,
                call: SourcePosition::NONE,
            };
            // A function inside another one that is no inlined part of it is the last of its chain.
            if entry.is_inlined && outer != NO_FUNCTION {
                function.caller = outer;
                function.call = SourcePosition {
                    file: (self.file)(entry.call_file)?,
                    line: entry.call_line,
                    column: entry.call_column,
                };
            }
            outer = u32::try_from(state.functions.len()).unwrap_or(NO_FUNCTION);
            state.functions.push(function);
            open.number = Some(outer);
        }
        Ok(outer)
    }
}

/// Whether an attribute gives a function's code.
fn is_code(name: gimli::DwAt) -> bool {
    matches!(name, gimli::DW_AT_low_pc | gimli::DW_AT_ranges)
}

/// Lays a range over the map, whose ranges begin at their keys and end at the first of each pair.
fn lay(map: &mut BTreeMap<u64, (u64, u32)>, range: &Range<u64>, number: u32) {
    if let Some((&start, before)) = map.range_mut(..=range.start).next_back()
        && range.start < before.0
    {
        let (end, outer) = *before;
        if start < range.start {
            before.0 = range.start;
        }
        if range.end < end {
            map.insert(range.end, (end, outer));
        }
    }
    map.insert(range.start, (range.end, number));
}

/// The innermost function of each address. A range ends where the next begins.
fn steps(map: &BTreeMap<u64, (u64, u32)>) -> Vec<(u64, u32)> {
    let mut steps: Vec<(u64, u32)> = Vec::with_capacity(map.len() + 1);
    let mut last_end = None;
    for (&start, &(end, number)) in map {
        if let Some(gap) = last_end.filter(|&gap| gap < start) {
            steps.push((gap, NO_FUNCTION));
        }
        steps.push((start, number));
        last_end = Some(end);
    }
    steps.extend(last_end.map(|end| (end, NO_FUNCTION)));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid(ranges: &[(Range<u64>, u32)]) -> Vec<(u64, u32)> {
        let mut map = BTreeMap::new();
        ranges.iter().for_each(|(range, number)| lay(&mut map, range, *number));
        steps(&map)
    }

    #[test]
    fn the_innermost_function_counts() {
        let nested = laid(&[(0..100, 0), (10..50, 1), (20..30, 2), (30..50, 3), (0..5, 4)]);
        let expected = [(0, 4), (5, 0), (10, 1), (20, 2), (30, 3), (50, 0), (100, NO_FUNCTION)];
        assert_eq!(nested, expected);
    }

    #[test]
    fn of_functions_with_the_same_code_the_last_counts() {
        assert_eq!(laid(&[(0..10, 0), (0..10, 1)]), [(0, 1), (10, NO_FUNCTION)]);
    }

    #[test]
    fn addresses_between_functions_have_none() {
        let expected = [(0, 0), (10, NO_FUNCTION), (20, 1), (30, NO_FUNCTION)];
        assert_eq!(laid(&[(20..30, 1), (0..10, 0)]), expected);
    }
}
