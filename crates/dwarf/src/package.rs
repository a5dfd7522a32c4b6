//! A package of split units (`.dwp`), and the units that it has by their ids.

use gimli::{DebugCuIndex, Dwarf, DwarfPackage, DwoId, Reader as _};

use super::error::DwarfError;
use super::sections::{Bytes, Loaded};

/// The bytes before the hash table of a package's index (DWARF 5, section 7.3.5.3; the version of GNU's
/// extension takes the padding too).
const HEADER_LEN: usize = 16;

/// A package of split units.
pub(super) struct Package<'a> {
    sections: DwarfPackage<Bytes<'a>>,
    units: PackageUnits,
}

impl<'a> Package<'a> {
    /// The package that has these sections.
    ///
    /// # Errors
    /// If its index is damaged.
    pub(super) fn of(sections: &'a Loaded) -> Result<Self, DwarfError> {
        Ok(Self { sections: sections.dwarf_package()?, units: PackageUnits::read(sections.unit_index())? })
    }

    /// The sections of the unit with an id, as the file with its skeleton needs them; `None` if the package
    /// lacks the unit.
    ///
    /// # Errors
    /// If the index has places outside of its sections.
    pub(super) fn find(
        &self,
        id: DwoId,
        parent: &Dwarf<Bytes<'a>>,
    ) -> Result<Option<Dwarf<Bytes<'a>>>, DwarfError> {
        let row = self.units.row(id.0);
        Ok(row.map(|row| self.sections.cu_sections(row, parent)).transpose()?)
    }
}

/// The rows of a package's index, by the ids of the units.
///
/// The index is a hash table. A hostile one has no free slot, so that a search for each unit walks all of
/// them. Therefore all ids are read once.
pub(super) struct PackageUnits(Vec<(u64, u32)>);

impl PackageUnits {
    /// Reads the ids of an index (`.debug_cu_index`).
    ///
    /// # Errors
    /// If the index is damaged.
    pub(super) fn read(index: Bytes<'_>) -> Result<Self, DwarfError> {
        let slots = DebugCuIndex::from(index).index()?.slot_count() as usize;
        let mut ids = index;
        if slots > 0 {
            ids.skip(HEADER_LEN)?;
        }
        let (mut rows, mut units) = (ids, Vec::new());
        rows.skip(8 * slots)?;
        for _ in 0..slots {
            let unit = (ids.read_u64()?, rows.read_u32()?);
            // A slot without an id is free.
            if unit.0 != 0 {
                units.push(unit);
            }
        }
        units.sort_unstable();
        units.dedup_by_key(|unit| unit.0);
        Ok(Self(units))
    }

    /// The row of a unit; `None` if the package lacks the unit.
    pub(super) fn row(&self, id: u64) -> Option<u32> {
        let first = self.0.partition_point(|&(of, _)| of < id);
        self.0.get(first).filter(|(of, _)| *of == id).map(|&(_, row)| row)
    }
}
