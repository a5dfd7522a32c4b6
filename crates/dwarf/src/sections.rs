//! gimli's view of the sections of debug information.

use gimli::{Dwarf, DwarfPackage, EndianSlice, RunTimeEndian, SectionId};
use goblin::container::Endian;

use super::error::DwarfError;
use super::object::Object;

/// Bytes of debug information, in the byte order of their file.
pub(super) type Bytes<'a> = EndianSlice<'a, RunTimeEndian>;

/// The sections that are kept in memory as a whole. `.debug_info` is not: it is read unit by unit.
const MAIN: &[SectionId] = &[
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

/// The sections of a supplementary file that names need. gimli reads the head of a unit's line table with the
/// unit.
const SUPPLEMENTARY: &[SectionId] = &[
    SectionId::DebugAbbrev,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

/// The sections of a split file (`.dwo`), which are short enough to be kept as a whole.
const SPLIT: &[SectionId] = &[
    SectionId::DebugAbbrev,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

/// The sections of a package of split files (`.dwp`). gimli needs all that the package's index names.
const PACKAGE: &[SectionId] = &[
    SectionId::DebugAbbrev,
    SectionId::DebugCuIndex,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugMacinfo,
    SectionId::DebugMacro,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugTuIndex,
    SectionId::DebugTypes,
];

/// Sections in memory.
pub(super) struct Loaded {
    sections: Vec<(SectionId, Vec<u8>)>,
    endian: RunTimeEndian,
}

impl Loaded {
    /// The sections of a file with debug information, without `.debug_info`.
    pub(super) fn main(object: &Object<'_>) -> Result<Self, DwarfError> {
        Self::load(object, MAIN, |id| Some(id.name()))
    }

    /// The sections of a supplementary file, without `.debug_info`.
    pub(super) fn supplementary(object: &Object<'_>) -> Result<Self, DwarfError> {
        Self::load(object, SUPPLEMENTARY, |id| Some(id.name()))
    }

    /// The sections of a split file.
    pub(super) fn split(object: &Object<'_>) -> Result<Self, DwarfError> {
        Self::load(object, SPLIT, SectionId::dwo_name)
    }

    /// The sections of a package of split files.
    pub(super) fn package(object: &Object<'_>) -> Result<Self, DwarfError> {
        Self::load(object, PACKAGE, SectionId::dwo_name)
    }

    fn load(
        object: &Object<'_>,
        ids: &[SectionId],
        name: impl Fn(SectionId) -> Option<&'static str>,
    ) -> Result<Self, DwarfError> {
        let named = ids.iter().filter_map(|&id| name(id).map(|name| (id, name)));
        let sections = named.map(|(id, name)| Ok((id, object.read(name)?)));
        Ok(Self { sections: sections.collect::<Result<_, DwarfError>>()?, endian: endian(object) })
    }

    /// The index of a package of split files by the ids of units.
    pub(super) fn unit_index(&self) -> Bytes<'_> {
        self.bytes(SectionId::DebugCuIndex)
    }

    /// The bytes of a section; none if it was not loaded.
    fn bytes(&self, id: SectionId) -> Bytes<'_> {
        let found = self.sections.iter().find(|(found, _)| *found == id);
        EndianSlice::new(found.map_or(&[], |(_, bytes)| bytes), self.endian)
    }

    /// The length of the line tables, in bytes.
    pub(super) fn line_bytes(&self) -> u64 {
        self.bytes(SectionId::DebugLine).len() as u64
    }

    /// The length of the abbreviations, in bytes.
    pub(super) fn abbreviation_bytes(&self) -> u64 {
        self.bytes(SectionId::DebugAbbrev).len() as u64
    }

    /// The length of the lists of address ranges, in bytes.
    pub(super) fn range_bytes(&self) -> u64 {
        [SectionId::DebugRanges, SectionId::DebugRngLists].map(|id| self.bytes(id).len() as u64).iter().sum()
    }

    /// The sections as gimli reads them.
    pub(super) fn dwarf(&self) -> Result<Dwarf<Bytes<'_>>, DwarfError> {
        Ok(Dwarf::load(|id| Ok::<_, gimli::Error>(self.bytes(id)))?)
    }

    /// The sections of a package as gimli reads them.
    pub(super) fn dwarf_package(&self) -> Result<DwarfPackage<Bytes<'_>>, DwarfError> {
        let empty = EndianSlice::new(&[], self.endian);
        Ok(DwarfPackage::load(|id| Ok::<_, gimli::Error>(self.bytes(id)), empty)?)
    }
}

/// The byte order of a file.
pub(super) fn endian(object: &Object<'_>) -> RunTimeEndian {
    match object.context().le {
        Endian::Little => RunTimeEndian::Little,
        Endian::Big => RunTimeEndian::Big,
    }
}
