//! Names that are in another unit, or in the supplementary file: references between units (link-time
//! optimisation, dwz), and into the file that dwz shares among several objects.
//!
//! The units are read again only for the names. Each round follows all references by one step out of their
//! units, so that two or three rounds do.

use std::collections::{BTreeSet, HashMap};

use gimli::{DebugInfo, Dwarf, EndianSlice, UnitOffset, UnitRef};

use super::allowance::Allowance;
use super::error::DwarfError;
use super::heads::Heads;
use super::limits;
use super::names::{Name, Names, Target};
use super::object::Object;
use super::sections::{Bytes, endian};
use super::stream::{Choice, UnitBytes, each_unit};
use super::texts::SharedTexts;
use super::unit::{Problems, UnitRows};

/// A file that references lead into.
#[derive(Clone, Copy)]
pub(super) struct Home<'a> {
    pub(super) object: &'a Object<'a>,
    pub(super) dwarf: &'a Dwarf<Bytes<'a>>,
}

/// Completes the names of the functions of these units.
///
/// # Errors
/// If `.debug_info` of one of the files is damaged.
pub(super) fn complete(
    units: &mut [UnitRows],
    main: Home<'_>,
    supplementary: Option<Home<'_>>,
    allowance: &Allowance,
    texts: &SharedTexts,
    problems: &Problems,
) -> Result<(), DwarfError> {
    let functions = || units.iter().flat_map(|unit| &unit.functions);
    let mut wanted: BTreeSet<Target> = functions().filter_map(|function| function.name.next).collect();
    let mut found = HashMap::new();
    for _ in 0..limits::UNITS_TO_A_NAME {
        if wanted.is_empty() {
            break;
        }
        let (mut own, mut shared) = (Vec::new(), Vec::new());
        for &target in &wanted {
            match target {
                Target::Main(offset) => own.push(offset),
                Target::Supplementary(offset) => shared.push(offset),
            }
        }
        Round { home: main, target: Target::Main, allowance, texts, problems }.read(&own, &mut found)?;
        match supplementary {
            Some(home) => {
                let round = Round { home, target: Target::Supplementary, allowance, texts, problems };
                round.read(&shared, &mut found)?;
            }
            None if shared.is_empty() => {}
            None => problems.add(0, DwarfError::Supplementary),
        }
        let next = wanted.iter().filter_map(|target| found.get(target).and_then(|name: &Name| name.next));
        wanted = next.filter(|next| !found.contains_key(next)).collect();
    }
    if !wanted.is_empty() {
        problems.add(0, DwarfError::Origins);
    }
    for unit in units {
        for function in &mut unit.functions {
            let mut steps = 0;
            while let Some(next) = function.name.next {
                let further = found.get(&next).copied().unwrap_or(Name::NONE);
                function.name = Name { next: None, ..function.name }.or(further);
                steps += 1;
                if steps > limits::ORIGINS {
                    problems.add(unit.offset, DwarfError::Origins);
                    function.name.next = None;
                }
            }
        }
    }
    Ok(())
}

/// The names of entries of one file, read once.
struct Round<'a> {
    home: Home<'a>,
    /// The target of a reference to an offset in this file.
    target: fn(u64) -> Target,
    allowance: &'a Allowance,
    texts: &'a SharedTexts,
    problems: &'a Problems,
}

impl Round<'_> {
    /// Reads the names of entries at these offsets, which ascend.
    fn read(&self, offsets: &[u64], found: &mut HashMap<Target, Name>) -> Result<(), DwarfError> {
        let Some(&last) = offsets.last() else { return Ok(()) };
        let inside = |start: u64, end: u64| {
            let first = offsets.partition_point(|&offset| offset < start);
            &offsets[first..offsets.partition_point(|&offset| offset < end)]
        };
        let choose = |unit: std::ops::Range<u64>| match inside(unit.start, unit.end).is_empty() {
            _ if unit.start > last => Choice::Stop,
            true => Choice::Skip,
            false => Choice::Take,
        };
        let mut heads = Heads::within(self.allowance);
        each_unit(self.home.object, choose, |unit| {
            let offsets = inside(unit.offset, unit.offset + unit.bytes.len() as u64);
            if let Err(why) = self.read_unit(&unit, &mut heads, offsets, found) {
                self.problems.add(unit.offset, why);
            }
            true
        })
    }

    fn read_unit(
        &self,
        bytes: &UnitBytes,
        heads: &mut Heads<'_>,
        offsets: &[u64],
        found: &mut HashMap<Target, Name>,
    ) -> Result<(), DwarfError> {
        let slice = EndianSlice::new(&bytes.bytes, endian(self.home.object));
        let Some(header) = DebugInfo::from(slice).units().next()? else { return Ok(()) };
        let dwarf: &Dwarf<Bytes<'_>> = self.home.dwarf;
        let unit = heads.unit(dwarf, header)?;
        let mut names = Names::new(UnitRef::new(dwarf, &unit), bytes.offset, Some(self.target));
        for &offset in offsets {
            match names.at(UnitOffset((offset - bytes.offset) as usize), self.texts) {
                Ok(name) => drop(found.insert((self.target)(offset), name)),
                Err(why) => self.problems.add(bytes.offset, why),
            }
        }
        Ok(())
    }
}
