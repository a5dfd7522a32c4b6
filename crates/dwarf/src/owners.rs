//! The unit that an address belongs to: of several, the first in `.debug_info`, except that a unit keeps an
//! address range that it has begun (LLVM's `DWARFDebugAranges::construct`).

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use gimli::DebugAranges;

use super::sections::Bytes;

/// The address ranges of `.debug_aranges`, by the offset of their unit. A set that is damaged ends the list.
///
/// Units that the section has are described only by it, and the others by their own ranges, as in LLVM.
pub(super) fn read_aranges(section: Bytes<'_>) -> HashMap<u64, Vec<Range<u64>>> {
    let mut found: HashMap<u64, Vec<Range<u64>>> = HashMap::new();
    let mut sets = DebugAranges::from(section).headers();
    while let Ok(Some(set)) = sets.next() {
        let ranges = found.entry(set.debug_info_offset().0 as u64).or_default();
        let mut entries = set.entries();
        loop {
            match entries.next() {
                Ok(Some(entry)) if entry.length() != 0 => ranges.push(entry.range().begin..entry.range().end),
                Ok(Some(_)) => {}
                Ok(None) => break,
                // A tombstone whose end overflows. An error that ends the list is followed by `None`.
                Err(_) => {}
            }
        }
    }
    found
}

/// Whether an address range that starts here is code of the file. Linkers leave the debug information of
/// functions that they remove, with addresses such as 0. Without any range of code, every address may be
/// code.
pub(super) fn starts_in(code: &[Range<u64>], start: u64) -> bool {
    code.is_empty() || code.iter().any(|range| range.contains(&start))
}

/// Whether one of the addresses, which ascend, is in one of the ranges.
pub(super) fn is_wanted(wanted: &[u64], ranges: &[Range<u64>]) -> bool {
    ranges.iter().any(|range| {
        let first = wanted.partition_point(|&address| address < range.start);
        wanted.get(first).is_some_and(|&address| address < range.end)
    })
}

/// A range of addresses that belongs to one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owned {
    /// The addresses.
    pub(super) at: Range<u64>,
    /// The number of the unit.
    pub(super) unit: u32,
}

/// The owners of all addresses, in ascending order, from the ranges of each unit. Units are numbered in the
/// order of their offsets.
pub(super) fn owners<'r>(units: impl Iterator<Item = &'r [Range<u64>]>) -> Vec<Owned> {
    let mut ends = Vec::new();
    for (unit, ranges) in units.enumerate() {
        for range in ranges.iter().filter(|range| range.start < range.end) {
            ends.extend([(range.start, unit as u32, true), (range.end, unit as u32, false)]);
        }
    }
    ends.sort_unstable_by_key(|&(address, unit, is_start)| (address, unit, is_start));
    let mut owned: Vec<Owned> = Vec::new();
    // The units with a range at the present address, and how many ranges.
    let mut open: BTreeMap<u32, u32> = BTreeMap::new();
    let mut from = 0;
    for (address, unit, is_start) in ends {
        if let Some((&first, _)) = open.first_key_value().filter(|_| from < address) {
            match owned.last_mut().filter(|last| last.at.end == from && open.contains_key(&last.unit)) {
                Some(last) => last.at.end = address,
                None => owned.push(Owned { at: from..address, unit: first }),
            }
        }
        if is_start {
            *open.entry(unit).or_default() += 1;
        } else if let Some(count) = open.get_mut(&unit) {
            *count -= 1;
            if *count == 0 {
                open.remove(&unit);
            }
        }
        from = address;
    }
    owned
}

/// The number of the unit that an address belongs to.
pub(super) fn owner_of(owners: &[Owned], vaddr: u64) -> Option<u32> {
    let after = owners.partition_point(|owned| owned.at.start <= vaddr);
    let owned = owners.get(after.checked_sub(1)?)?;
    (vaddr < owned.at.end).then_some(owned.unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(units: &[&[(u64, u64)]]) -> Vec<(u64, u64, u32)> {
        let ranges = |unit: &&[(u64, u64)]| unit.iter().map(|&(start, end)| start..end).collect();
        let units: Vec<Vec<Range<u64>>> = units.iter().map(ranges).collect();
        let owned = owners(units.iter().map(|unit| &unit[..]));
        owned.into_iter().map(|owned| (owned.at.start, owned.at.end, owned.unit)).collect()
    }

    #[test]
    fn ranges_that_do_not_overlap_are_sorted() {
        assert_eq!(owned(&[&[(20, 30)], &[(0, 10), (10, 15)]]), [(0, 15, 1), (20, 30, 0)]);
    }

    #[test]
    fn a_unit_keeps_a_range_that_it_has_begun() {
        assert_eq!(owned(&[&[(5, 30)], &[(0, 10)]]), [(0, 10, 1), (10, 30, 0)]);
        assert_eq!(owned(&[&[(0, 30)], &[(0, 10)]]), [(0, 30, 0)]);
    }

    #[test]
    fn empty_and_reversed_ranges_own_nothing() {
        assert_eq!(owned(&[&[(5, 5), (9, 3)]]), []);
    }

    #[test]
    fn a_range_is_wanted_for_an_address_inside_it() {
        let ranges = [10..20, 30..40];
        assert!(is_wanted(&[5, 35], &ranges) && is_wanted(&[10], &ranges));
        assert!(!is_wanted(&[9, 20, 29, 40], &ranges) && !is_wanted(&[], &ranges));
    }
}
