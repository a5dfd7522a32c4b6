//! Finds fields of code blobs that libjvm does not describe, by their values in all blobs that exist.
//!
//! | Field | Values by which it is known |
//! |---|---|
//! | `CodeBlob::_kind` | the number of the kind that each blob's name tells |
//! | `nmethod::_comp_level` | a level in each compiled method, and 0 in each wrapper of a native method |
//! | `nmethod::_stub_offset` | an aligned place behind the last PcDesc's, and before all other such places |
//!
//! The number of a method's compiler (`_compiler_type`) looks like a level, and is nowhere higher. Handlers,
//! to which fields lead too, are stubs, and the first stub is before them or is one of them.
//!
//! The VM makes one compiled method at a time, under `CodeCache_lock` (`nmethod::new_nmethod`,
//! `code/nmethod.cpp`). A blob that is half initialised belies the right field, so the blobs are read
//! [`READINGS`] times.

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::{BlobPart, CodeBlobLayout, CodeCacheLayout};

use super::check::{
    self, BlobReader, COMP_LEVEL, KIND, LEVELS, NATIVE_NMETHOD, NMETHOD, NamedBlob, STUB_OFFSET,
};
use super::code;
use super::error::LayoutError;
use super::learnt::Found;
use super::nmethod::scopes;
use crate::vm_structs::VmStructs;

const READINGS: usize = 4;

/// The fewest compiled methods whose values tell a field from its neighbours.
const MIN_NMETHODS: usize = 8;

/// The alignment of the stubs, in bytes (`CodeSection::alignment`, `asm/codeBuffer.hpp`). The handler of
/// exceptions that leave a method, which is before the stubs, has none.
const STUBS_ALIGNMENT: u64 = 8;

/// The alignment of an nmethod's offsets, in bytes.
const OFFSET_BYTES: usize = 4;

/// The search for one field.
type Find = fn(&VmStructs, &Blobs<'_>) -> Option<u32>;

/// The fields that libjvm does not describe, as far as they are found. The others stay missing.
pub(super) fn missing(structs: &VmStructs, memory: &dyn Memory) -> Vec<Found> {
    let (Ok(cache), Ok(blobs)) = (code::code_cache(structs, memory), code::code_blob(structs, memory)) else {
        return Vec::new();
    };
    let reader = BlobReader { blobs: &blobs, memory };
    let find: [(_, _, Find); 3] = [
        ("CodeBlob", KIND, kind),
        ("nmethod", COMP_LEVEL, comp_level),
        ("nmethod", STUB_OFFSET, stub_offset),
    ];
    let is_missing = |&(structure, field, _): &(_, _, _)| structs.offset(structure, field).is_err();
    let found = find.into_iter().filter(is_missing).filter_map(|(structure, field, find)| {
        let offset = (0..READINGS).find_map(|_| find(structs, &Blobs::read(&cache, reader)?))?;
        Some(Found { structure, field, offset })
    });
    found.collect()
}

/// The error that the field of the stubs, as libjvm describes it, leads behind the first stub: another field
/// leads to a place before, and behind the last PcDesc.
pub(super) fn contradiction(structs: &VmStructs, memory: &dyn Memory) -> Option<LayoutError> {
    let described = structs.offset("nmethod", STUB_OFFSET).ok()?;
    let (cache, blobs) = (code::code_cache(structs, memory).ok()?, code::code_blob(structs, memory).ok()?);
    let reader = BlobReader { blobs: &blobs, memory };
    // A method that is half initialised contradicts a single reading.
    let other = || {
        let places = stub_offsets(structs, &Blobs::read(&cache, reader)?)?;
        let first = *places.first()?;
        (!places.contains(&described)).then_some(first)
    };
    let others: Option<Vec<_>> = (0..READINGS).map(|_| other()).collect();
    let reason =
        format!("described at {described}, while the field at {} leads to the first stub", others?[0]);
    Some(LayoutError::implausible("nmethod", STUB_OFFSET, reason))
}

/// All blobs, as they are now.
struct Blobs<'a> {
    reader: BlobReader<'a>,
    named: Vec<NamedBlob>,
}

impl<'a> Blobs<'a> {
    fn read(cache: &CodeCacheLayout, reader: BlobReader<'a>) -> Option<Self> {
        Some(Self { reader, named: check::plausible_blobs(cache, reader).ok()? })
    }

    fn called(&self, name: &str) -> Vec<u64> {
        self.named.iter().filter(|(_, of, _)| of == name).map(|&(blob, ..)| blob).collect()
    }

    /// The compiled methods, if they are enough.
    fn nmethods(&self) -> Option<Vec<u64>> {
        Some(self.called(NMETHOD)).filter(|nmethods| nmethods.len() >= MIN_NMETHODS)
    }

    fn byte(&self, blob: u64, offset: u32) -> Option<u8> {
        self.reader.memory.load_u8(blob.wrapping_add(u64::from(offset)))
    }
}

/// The only byte that is the number of a compiled method's kind in compiled methods and wrappers alone, and
/// that of an adapter's in adapters.
fn kind(structs: &VmStructs, blobs: &Blobs<'_>) -> Option<u32> {
    let kinds = code::blob_kinds_at(structs, 0).ok()??;
    let size = structs.size_of("CodeBlob").ok()?;
    let is_kind = |offset: &u32| {
        blobs.named.iter().all(|(blob, name, _)| {
            let kind = blobs.byte(*blob, *offset);
            let is_compiled = [NMETHOD, NATIVE_NMETHOD].contains(&name.as_str());
            (kind == Some(kinds.nmethod)) == is_compiled && (name != ADAPTERS || kind == Some(kinds.adapter))
        })
    };
    only((0..size).filter(is_kind))
}

/// The name of a blob with adapters (`code/codeBlob.cpp`, AdapterBlob).
const ADAPTERS: &str = "I2C/C2I adapters";

/// The byte with a level that is nowhere below another such byte.
fn comp_level(structs: &VmStructs, blobs: &Blobs<'_>) -> Option<u32> {
    let nmethods = blobs.nmethods()?;
    let wrappers = blobs.called(NATIVE_NMETHOD);
    let levels = |offset: u32| -> Option<Vec<u64>> {
        let level = |&blob: &u64| blobs.byte(blob, offset).filter(|level| LEVELS.contains(level));
        let is_wrapper = |&blob: &u64| blobs.byte(blob, offset) == Some(0);
        wrappers
            .iter()
            .all(is_wrapper)
            .then(|| nmethods.iter().map(level).collect::<Option<Vec<_>>>())?
            .map(|levels| levels.into_iter().map(u64::from).collect())
    };
    let first = structs.size_of("CodeBlob").unwrap_or(0);
    let size = structs.size_of("nmethod").ok()?;
    let places = (first..size).filter_map(|offset| Some((offset, levels(offset)?)));
    extreme(&places.collect::<Vec<_>>(), |level, other| level >= other).first().copied()
}

fn stub_offset(structs: &VmStructs, blobs: &Blobs<'_>) -> Option<u32> {
    stub_offsets(structs, blobs)?.first().copied()
}

/// The distances that lead behind the last PcDesc, and nowhere behind another such distance.
fn stub_offsets(structs: &VmStructs, blobs: &Blobs<'_>) -> Option<Vec<u32>> {
    let scopes = scopes(structs).ok()?;
    let pc_desc_size = u64::from(structs.size_of("PcDesc").ok()?);
    let pc_offset = structs.offset("PcDesc", "_pc_offset").ok()?;
    let reader = blobs.reader;
    let CodeBlobLayout { code_begin, code_end, .. } = *reader.blobs;
    // The places between which the stubs of each method begin. The last PcDesc is a sentinel.
    let bounds = |&blob: &u64| {
        let last = reader.part(blob, scopes.pcs_end)?.checked_sub(2 * pc_desc_size)?;
        let last = (last >= reader.part(blob, scopes.pcs_begin)?).then(|| reader.int(last, pc_offset))??;
        Some((
            reader.part(blob, code_begin)?.checked_add_signed(last.max(0).into())?,
            reader.part(blob, code_end)?,
        ))
    };
    let nmethods = blobs.nmethods()?;
    let bounds: Vec<_> = nmethods.iter().map(bounds).collect::<Option<_>>()?;
    let stubs = |offset: u32| -> Option<Vec<u64>> {
        let begin = |(&blob, &(least, most)): (&u64, &(u64, u64))| {
            let at = reader.part(blob, BlobPart::FromBlob(offset))?;
            ((least..=most).contains(&at) && at.is_multiple_of(STUBS_ALIGNMENT)).then_some(at)
        };
        nmethods.iter().zip(&bounds).map(begin).collect()
    };
    let first = structs.size_of("CodeBlob").unwrap_or(0);
    let size = structs.size_of("nmethod").ok()?;
    let places = (first..size).step_by(OFFSET_BYTES).filter_map(|offset| Some((offset, stubs(offset)?)));
    Some(extreme(&places.collect::<Vec<_>>(), |at, other| at <= other))
}

/// The places whose value in each blob is the extreme one among all places. Several have equal values, and
/// any will do.
fn extreme(places: &[(u32, Vec<u64>)], is_extreme: impl Fn(u64, u64) -> bool) -> Vec<u32> {
    let is_before = |values: &[u64], others: &[u64]| {
        values.iter().zip(others).all(|(&value, &other)| is_extreme(value, other))
    };
    let found =
        places.iter().filter(|(_, values)| places.iter().all(|(_, others)| is_before(values, others)));
    found.map(|&(offset, _)| offset).collect()
}

fn only(mut places: impl Iterator<Item = u32>) -> Option<u32> {
    places.next().filter(|_| places.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extreme_place_is_so_in_every_blob() {
        let extreme = |values: [&[u64]; 3]| {
            let places: Vec<_> = (0..).zip(values.map(<[u64]>::to_vec)).collect();
            extreme(&places, |value, other| value >= other)
        };
        assert_eq!(extreme([&[1, 1, 2], &[3, 1, 4], &[1, 1, 1]]), [1]);
        assert_eq!(extreme([&[1, 1], &[0, 1], &[1, 1]]), [0, 2]);
        assert_eq!(extreme([&[1, 3], &[3, 1], &[1, 1]]), []);
    }
}
