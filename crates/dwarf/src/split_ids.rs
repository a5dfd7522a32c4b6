//! The ids by which split units belong to the units of an object.

use gimli::{DebugAbbrev, DebugInfo, EndianSlice, UnitHeader, UnitType};
use otlpprof_elf::source::Source;

use super::allowance::Allowance;
use super::error::DwarfError;
use super::heads::Heads;
use super::limits;
use super::object::Object;
use super::package::PackageUnits;
use super::sections::{Bytes, endian};
use super::stream::{Choice, UnitBytes, each_unit};

/// The units of an object that are read in search of a first skeleton: hand-written code has none.
const FIRST_UNITS: usize = 64;

/// The ids of the split units that an object's units stand for, in ascending order. None if the object has
/// none among its first units.
///
/// # Errors
/// If the debug information is damaged.
pub fn split_ids(object: &(dyn Source + Sync)) -> Result<Vec<u64>, DwarfError> {
    let object = Object::parse(object)?;
    let (mut ids, mut seen, mut failure) = (Vec::new(), 0, None);
    let mut abbreviations = None;
    let len = object.section(".debug_abbrev").ok().flatten().map_or(0, |section| section.len);
    let allowance = Allowance::of(0, 0, len);
    let mut heads = Heads::within(&allowance);
    each_unit(
        &object,
        |_| Choice::Take,
        |unit| {
            seen += 1;
            match id_of(&object, &unit, &mut abbreviations, &mut heads) {
                Ok(id) => ids.extend(id),
                Err(error) => failure = Some(error),
            }
            failure.is_none() && (!ids.is_empty() || seen < FIRST_UNITS) && ids.len() < limits::SPLIT_UNITS
        },
    )?;
    ids.sort_unstable();
    failure.map_or(Ok(ids), Err)
}

/// Whether a package of split units has all of these.
///
/// # Errors
/// If the package is damaged.
pub fn package_has(package: &(dyn Source + Sync), ids: &[u64]) -> Result<bool, DwarfError> {
    let object = Object::parse(package)?;
    let bytes = object.read(".debug_cu_index")?;
    let units = PackageUnits::read(EndianSlice::new(&bytes, endian(&object)))?;
    Ok(ids.iter().all(|&id| units.row(id).is_some()))
}

/// The id of the split unit that a unit stands for. `abbreviations` are the abbreviations of the object, once
/// a unit has needed them.
fn id_of(
    object: &Object<'_>,
    unit: &UnitBytes,
    abbreviations: &mut Option<Vec<u8>>,
    heads: &mut Heads<'_>,
) -> Result<Option<u64>, DwarfError> {
    let slice = EndianSlice::new(&unit.bytes, endian(object));
    let Some(header) = DebugInfo::from(slice).units().next()? else { return Ok(None) };
    match header.type_() {
        UnitType::Skeleton(id) => Ok(Some(id.0)),
        // GNU's extension of DWARF 4 has the id in an attribute.
        _ if header.version() == 4 => {
            let bytes = match abbreviations {
                Some(bytes) => bytes,
                None => abbreviations.insert(object.read(".debug_abbrev")?),
            };
            attribute_of(&header, EndianSlice::new(bytes, endian(object)), heads)
        }
        _ => Ok(None),
    }
}

fn attribute_of(
    header: &UnitHeader<Bytes<'_>>,
    section: Bytes<'_>,
    heads: &mut Heads<'_>,
) -> Result<Option<u64>, DwarfError> {
    let abbreviations = heads.abbreviations(&DebugAbbrev::from(section), header.debug_abbrev_offset())?;
    let mut entries = header.entries(&abbreviations);
    let Some(root) = entries.next_dfs()? else { return Ok(None) };
    Ok(match root.attr_value(gimli::DW_AT_GNU_dwo_id) {
        Some(gimli::AttributeValue::DwoId(id)) => Some(id.0),
        _ => None,
    })
}
