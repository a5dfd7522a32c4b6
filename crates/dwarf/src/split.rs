//! Units whose functions are in another file: split DWARF (DWARF 5, section 7.3.2; before, GNU's extension).

use gimli::{Dwarf, Section as _, UnitRef};
use otlpprof_elf::source::Source;

use super::allowance::Allowance;
use super::error::DwarfError;
use super::heads::Heads;
use super::object::Object;
use super::package::Package;
use super::sections::{Bytes, Loaded};

/// Finds the files of split units.
pub trait SplitFiles: Sync {
    /// The bytes of a `.dwo` file, from its name and the compilation's folder as the compiler recorded them.
    /// Its identity need not be checked: the id is compared with the unit's.
    fn open(&self, name: &str, folder: Option<&str>, dwo_id: u64) -> Option<Box<dyn Source + Send + Sync>>;
}

/// The places at which split units are searched.
#[derive(Clone, Copy)]
pub(super) struct Split<'a> {
    /// A package that has the split units of the file.
    pub(super) package: Option<&'a Package<'a>>,
    /// The finder of single files.
    pub(super) files: Option<&'a dyn SplitFiles>,
    /// The allowance of the object, to which single files add their address ranges, abbreviations and line
    /// tables.
    pub(super) allowance: &'a Allowance,
}

impl Split<'_> {
    /// Calls `read` with the split unit of a skeleton, and whether it is one. A unit that is no skeleton is
    /// passed on.
    ///
    /// # Errors
    /// If the split unit is missing, or is another one, and errors of `read`.
    pub(super) fn with_unit<T>(
        &self,
        skeleton: UnitRef<'_, Bytes<'_>>,
        read: impl FnOnce(UnitRef<'_, Bytes<'_>>, bool) -> Result<T, DwarfError>,
    ) -> Result<T, DwarfError> {
        let Some(dwo_id) = skeleton.dwo_id else { return read(skeleton, false) };
        let name = match skeleton.dwo_name()? {
            Some(name) => skeleton.attr_string(name)?.to_string_lossy().into_owned(),
            None => return read(skeleton, false),
        };
        let packed = self.package.map(|package| package.find(dwo_id, skeleton.dwarf)).transpose()?;
        if let Some(dwarf) = packed.flatten() {
            self.allowance.take_split(dwarf.debug_info.reader().len() as u64)?;
            return with_unit_of(&dwarf, &Bases::of(skeleton), dwo_id, name, self.allowance, read);
        }
        let folder = skeleton.comp_dir.map(|folder| folder.to_string_lossy().into_owned());
        let found = self.files.and_then(|files| files.open(&name, folder.as_deref(), dwo_id.0));
        let Some(found) = found else { return Err(DwarfError::Split { name, dwo_id: dwo_id.0 }) };
        let source: &(dyn Source + Sync) = &*found;
        self.allowance.take_split(source.len())?;
        let loaded = Loaded::split(&Object::parse(source)?)?;
        self.allowance.add_ranges(loaded.range_bytes());
        self.allowance.add_heads(loaded.line_bytes() + loaded.abbreviation_bytes());
        let mut dwarf = loaded.dwarf()?;
        dwarf.make_dwo(skeleton.dwarf);
        with_unit_of(&dwarf, &Bases::of(skeleton), dwo_id, name, self.allowance, read)
    }
}

/// The attributes of a skeleton that its split unit refers to.
struct Bases {
    low_pc: u64,
    addresses: gimli::DebugAddrBase,
    ranges: gimli::DebugRngListsBase,
}

impl Bases {
    fn of(skeleton: UnitRef<'_, Bytes<'_>>) -> Self {
        let (addresses, ranges) = (skeleton.addr_base, skeleton.rnglists_base);
        Self { low_pc: skeleton.low_pc, addresses, ranges }
    }
}

fn with_unit_of<T>(
    dwarf: &Dwarf<Bytes<'_>>,
    bases: &Bases,
    dwo_id: gimli::DwoId,
    name: String,
    allowance: &Allowance,
    read: impl FnOnce(UnitRef<'_, Bytes<'_>>, bool) -> Result<T, DwarfError>,
) -> Result<T, DwarfError> {
    let (mut units, mut heads) = (dwarf.units(), Heads::within(allowance));
    while let Some(header) = units.next()? {
        // Type units precede the unit with the functions.
        if matches!(header.type_(), gimli::UnitType::Type { .. } | gimli::UnitType::SplitType { .. }) {
            continue;
        }
        let mut unit = heads.unit(dwarf, header)?;
        if unit.dwo_id.is_some_and(|found| found == dwo_id) {
            (unit.low_pc, unit.addr_base) = (bases.low_pc, bases.addresses);
            // Ranges of GNU's extension are in the skeleton's file.
            if unit.header.version() < 5 {
                unit.rnglists_base = bases.ranges;
            }
            return read(UnitRef::new(dwarf, &unit), true);
        }
    }
    Err(DwarfError::Split { name, dwo_id: dwo_id.0 })
}
