//! Reads all units of an object, or the units of some addresses, by several threads: one decompresses
//! `.debug_info` and hands on unit by unit; the others read the units.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use otlpprof_elf::symbols::demangle::demangle;

use super::allowance::Allowance;
use super::elsewhere::{Home, complete};
use super::error::{DwarfError, Problem};
use super::frame::{LookUp, SourceFrame, TextId};
use super::functions::NO_FUNCTION;
use super::heads::Heads;
use super::lines::SourcePosition;
use super::object::{FileBytes, Object};
use super::owners::{Owned, is_wanted, owner_of, owners, read_aranges};
use super::package::Package;
use super::sections::{Loaded, endian};
use super::split::{Split, SplitFiles};
use super::stream::{Choice, UnitBytes, each_unit};
use super::symbols::{Symbol, Symbols};
use super::texts::{NO_TEXT, SharedTexts, Texts};
use super::unit::{LineRow, Problems, Shared, UnitRows};
use gimli::EndianSlice;

/// The files of one object.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The file with debug information: the debug file, or the executable or library itself.
    pub debug: FileBytes<'a>,
    /// The executable or library, if it is another file. It gives symbols that the debug file lacks.
    pub object: Option<FileBytes<'a>>,
    /// The decompressed ELF file of `.gnu_debugdata` (MiniDebugInfo). It gives symbols.
    pub minidebug: Option<FileBytes<'a>>,
    /// The file that `.gnu_debugaltlink` or `.debug_sup` names.
    pub supplementary: Option<FileBytes<'a>>,
    /// The package of split units (`.dwp`).
    pub package: Option<FileBytes<'a>>,
    /// Finds split units (`.dwo`).
    pub split: Option<&'a dyn SplitFiles>,
}

impl<'a> Inputs<'a> {
    /// A file that has everything.
    pub fn of(debug: FileBytes<'a>) -> Self {
        Self { debug, object: None, minidebug: None, supplementary: None, package: None, split: None }
    }
}

/// Debug information in memory: of all addresses, or of those that were asked for.
#[derive(Debug)]
pub struct Compiled {
    pub(super) units: Vec<UnitRows>,
    pub(super) owners: Vec<Owned>,
    pub(super) symbols: Symbols,
    pub(super) texts: Texts,
    problems: Vec<Problem>,
    all_problems: usize,
}

/// Reads debug information: of all addresses, or of the `wanted` ones, for which other units are skipped.
///
/// # Errors
/// If a file or one of its sections is damaged as a whole. A damaged unit is a problem of the result.
pub fn compile(inputs: &Inputs<'_>, wanted: Option<&[u64]>) -> Result<Compiled, DwarfError> {
    let texts = SharedTexts::default();
    let debug = Object::parse(inputs.debug)?;
    let object = inputs.object.map(Object::parse).transpose()?;
    let minidebug = inputs.minidebug.map(Object::parse).transpose()?;
    let supplementary = inputs.supplementary.map(Object::parse).transpose()?;
    let package = inputs.package.map(Object::parse).transpose()?;
    let symbol_files: Vec<&Object<'_>> = std::iter::once(&debug).chain(&object).collect();
    let symbols = Symbols::read(&symbol_files, minidebug.as_ref(), &texts)?;
    let mut wanted = wanted.map(<[u64]>::to_vec);
    if let Some(wanted) = &mut wanted {
        wanted.sort_unstable();
    }
    let aranges = debug.read(".debug_aranges")?;
    let aranges = read_aranges(EndianSlice::new(&aranges, endian(&debug)));
    let files = Files { debug: &debug, supplementary: supplementary.as_ref(), package: package.as_ref() };
    let problems = Problems::default();
    let units = files.read(inputs.split, wanted.as_deref(), &aranges, &texts, &problems)?;
    let owners = owners(units.iter().map(|unit| &unit.ranges[..]));
    let (problems, all_problems) = problems.into_inner();
    Ok(Compiled { units, owners, symbols, texts: texts.into_inner(), problems, all_problems })
}

/// The files with debug information.
struct Files<'a> {
    debug: &'a Object<'a>,
    supplementary: Option<&'a Object<'a>>,
    package: Option<&'a Object<'a>>,
}

impl Files<'_> {
    fn read(
        &self,
        split: Option<&dyn SplitFiles>,
        wanted: Option<&[u64]>,
        aranges: &HashMap<u64, Vec<Range<u64>>>,
        texts: &SharedTexts,
        problems: &Problems,
    ) -> Result<Vec<UnitRows>, DwarfError> {
        let readers = thread::available_parallelism().map_or(1, usize::from);
        let (sender, receiver) = sync_channel(2 * readers);
        thread::scope(|scope| {
            let streamed = scope.spawn(move || stream(self.debug, wanted, aranges, &sender));
            let receiver = Arc::new(Mutex::new(receiver));
            let loaded = Loaded::main(self.debug)?;
            let shared = self.supplementary.map(Loaded::supplementary).transpose()?;
            let package = self.package.map(Loaded::package).transpose()?;
            let mut dwarf = loaded.dwarf()?;
            let allowance =
                Allowance::of(loaded.line_bytes(), loaded.range_bytes(), loaded.abbreviation_bytes());
            if let Some(package) = &package {
                allowance.add_ranges(package.range_bytes());
            }
            for other in shared.iter().chain(&package) {
                allowance.add_heads(other.line_bytes() + other.abbreviation_bytes());
            }
            let package = package.as_ref().map(Package::of).transpose()?;
            let shared: Option<Arc<_>> = shared.as_ref().map(Loaded::dwarf).transpose()?.map(Arc::new);
            dwarf.sup.clone_from(&shared);
            let code = self.debug.code();
            let reader = Shared {
                dwarf: &dwarf,
                endian: endian(self.debug),
                split: Split { package: package.as_ref(), files: split, allowance: &allowance },
                allowance: &allowance,
                code: &code,
                aranges,
                wanted,
                texts,
                problems,
            };
            let mut units = read_units(&reader, readers, &receiver)?;
            drop(receiver);
            streamed.join().map_err(|_| DwarfError::Panicked)??;
            units.sort_unstable_by_key(|unit| unit.offset);
            let supplementary = self.supplementary.zip(shared.as_deref());
            let supplementary = supplementary.map(|(object, dwarf)| Home { object, dwarf });
            let main = Home { object: self.debug, dwarf: &dwarf };
            complete(&mut units, main, supplementary, &allowance, texts, problems)?;
            Ok(units)
        })
    }
}

/// Hands on the units that may have wanted addresses.
fn stream(
    object: &Object<'_>,
    wanted: Option<&[u64]>,
    aranges: &HashMap<u64, Vec<Range<u64>>>,
    units: &SyncSender<UnitBytes>,
) -> Result<(), DwarfError> {
    // The last unit with wanted addresses, if `.debug_aranges` has a unit for each of them. Then no unit
    // outside that section needs to be read.
    let last = wanted.and_then(|wanted| {
        let known = owners(aranges.values().map(|ranges| &ranges[..]));
        let units = aranges.iter().filter(|(_, ranges)| is_wanted(wanted, ranges));
        let last = units.map(|(&offset, _)| offset).max();
        last.filter(|_| wanted.iter().all(|&vaddr| owner_of(&known, vaddr).is_some()))
    });
    let choose = |unit: Range<u64>| match (last, wanted, aranges.get(&unit.start)) {
        (Some(last), ..) if unit.start > last => Choice::Stop,
        (Some(_), _, None) => Choice::Skip,
        (_, Some(wanted), Some(ranges)) if !is_wanted(wanted, ranges) => Choice::Skip,
        _ => Choice::Take,
    };
    each_unit(object, choose, |unit| units.send(unit).is_ok())
}

fn read_units(
    reader: &Shared<'_>,
    threads: usize,
    units: &Arc<Mutex<Receiver<UnitBytes>>>,
) -> Result<Vec<UnitRows>, DwarfError> {
    let work = || {
        let mut read = Vec::new();
        let mut heads = Heads::within(reader.allowance);
        loop {
            let unit = units.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(unit) = unit else { return read };
            match reader.read_unit(&unit, &mut heads) {
                Ok(rows) => read.extend(rows),
                Err(why) => reader.problems.add(unit.offset, why),
            }
            if reader.allowance.is_exceeded() {
                return read;
            }
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().map_err(|_| DwarfError::Panicked)?);
        }
        Ok(all)
    })
}

impl std::fmt::Debug for UnitRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} rows of the unit at {:#x}", self.rows.len(), self.offset)
    }
}

impl Compiled {
    /// The first losses of units, in the order of `.debug_info`.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The first losses of units, without the debug information.
    pub fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// The number of all losses.
    pub fn all_problems(&self) -> usize {
        self.all_problems
    }

    /// The row at an address, with its unit.
    fn row(&self, vaddr: u64) -> Option<(&UnitRows, &LineRow)> {
        let unit = self.units.get(owner_of(&self.owners, vaddr)? as usize)?;
        let after = unit.rows.partition_point(|row| row.address <= vaddr);
        Some((unit, unit.rows.get(after.checked_sub(1)?)?))
    }
}

/// A frame of these numbers.
pub(super) fn frame(function: u32, place: SourcePosition) -> SourceFrame {
    let text = |number: u32| (number != NO_TEXT).then_some(TextId(number));
    SourceFrame { function: text(function), file: text(place.file), line: place.line, column: place.column }
}

/// Names the outermost frame by its symbol, which precedes the debug information's name.
pub(super) fn name_by_symbol(frames: &mut Vec<SourceFrame>, symbol: Option<Symbol>) {
    let Some(symbol) = symbol else { return };
    let named = frame(symbol.name, SourcePosition { file: symbol.file, ..SourcePosition::NONE });
    match frames.last_mut() {
        Some(last) => {
            last.function = named.function;
            last.file = last.file.or(named.file);
        }
        None => frames.push(named),
    }
}

impl LookUp for Compiled {
    type Error = std::convert::Infallible;

    fn frames(&mut self, vaddr: u64, frames: &mut Vec<SourceFrame>) -> Result<(), Self::Error> {
        frames.clear();
        if let Some((unit, row)) = self.row(vaddr) {
            let (mut function, mut place) = (row.function, row.place);
            while let Some(of) = unit.functions.get(function as usize) {
                frames.push(frame(of.name.text(), place));
                (function, place) = (of.caller, of.call);
            }
            if row.function == NO_FUNCTION && row.place != SourcePosition::NONE {
                frames.push(frame(NO_TEXT, row.place));
            }
        }
        name_by_symbol(frames, self.symbols.find(vaddr));
        frames.retain(|frame| !frame.is_empty());
        Ok(())
    }

    fn name(&mut self, id: TextId) -> Result<Cow<'_, str>, Self::Error> {
        let Ok(text) = self.text(id);
        Ok(demangle(&text).into())
    }

    fn text(&mut self, id: TextId) -> Result<Cow<'_, str>, Self::Error> {
        let known = (id.0 as usize) < self.texts.len();
        Ok(String::from_utf8_lossy(if known { self.texts.get(id.0) } else { &[] }))
    }
}
