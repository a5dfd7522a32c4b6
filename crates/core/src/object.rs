//! The loaded ELF objects for use in a handler: an immutable, sorted map from code addresses to objects.
//!
//! `elf::objects` builds a new [`ObjectMap`] when objects are loaded or unloaded, and publishes it. The old
//! map is freed once no handler can still use it. An [`ObjectIndex`] is assigned once in a process's life and
//! never reused, so a frame that carries one can be resolved long after the object is unloaded.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::address::{ElfVaddr, LoadBias, RuntimeAddr};
use super::build_id::BuildId;
use super::unwind_table::UnwindTable;

/// Identifies one loading of one object, for the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct ObjectIndex(pub u32);

/// Eight bytes of an object's mapped image, with their value at the time of the scan. A handler compares the
/// bytes with that value before it trusts the map, since another object may have been mapped in the same
/// place since then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentityWord {
    /// The address of the eight bytes: in the build-id's note, or else in the ELF header (`e_shoff`, which
    /// differs with the file's size).
    pub address: RuntimeAddr,
    /// The value of the bytes at the time of the scan.
    pub value: u64,
}

/// One loaded object.
#[derive(Debug)]
pub struct LoadedObject {
    /// The object's index, valid for the life of the process.
    pub index: ObjectIndex,
    /// The difference of run-time and ELF virtual addresses.
    pub load_bias: LoadBias,
    /// The GNU build-id, in a record that is never freed, so that a pointer to the record identifies it.
    pub build_id: Option<&'static BuildId>,
    /// Bytes that distinguish the object from another one mapped in its place.
    pub identity: IdentityWord,
    /// The unwind table, once compiled. An object without call frame information gets an empty table.
    pub unwind: OnceLock<UnwindTable>,
    /// The address of the mapped `.eh_frame_hdr`, which is used until the unwind table exists, and for code
    /// that the table does not cover.
    pub frame_header: Option<RuntimeAddr>,
    /// The range of the executable segments, as ELF virtual addresses.
    pub text: std::ops::Range<ElfVaddr>,
}

/// A range of executable run-time addresses that belongs to one object.
#[derive(Clone, Debug)]
pub struct TextRange {
    /// The first address.
    pub start: RuntimeAddr,
    /// The address one past the last.
    pub end: RuntimeAddr,
    /// The object that the code belongs to.
    pub object: std::sync::Arc<LoadedObject>,
}

/// All executable ranges, sorted and disjoint.
#[derive(Debug, Default)]
pub struct ObjectMap {
    ranges: Box<[TextRange]>,
    /// The number of this map; later maps have higher numbers. A sample that a handler took with this map
    /// refers to no object that was unloaded before the map was built.
    pub generation: u64,
}

impl ObjectMap {
    /// Builds a map of `ranges`, which are sorted here. A range that overlaps the next one ends where the
    /// next one starts.
    pub fn new(mut ranges: Vec<TextRange>, generation: u64) -> Self {
        ranges.sort_by_key(|range| range.start);
        let mut next_start = RuntimeAddr(u64::MAX);
        for range in ranges.iter_mut().rev() {
            range.end = range.end.min(next_start);
            next_start = range.start;
        }
        Self { ranges: ranges.into_boxed_slice(), generation }
    }

    /// Returns the object whose code contains `pc`. Allocates nothing, never panics. The caller must still
    /// compare [`LoadedObject::identity`].
    #[inline]
    pub fn find(&self, pc: RuntimeAddr) -> Option<&LoadedObject> {
        let next = self.ranges.partition_point(|range| range.start <= pc);
        let range = self.ranges.get(next.checked_sub(1)?)?;
        (pc < range.end).then_some(&*range.object)
    }

    /// The ranges, in ascending order.
    pub fn ranges(&self) -> &[TextRange] {
        &self.ranges
    }
}

/// The next object index. One counter serves the process, across all sessions.
static NEXT_OBJECT: AtomicU64 = AtomicU64::new(0);

impl ObjectIndex {
    /// Assigns a new index; `None` after 2³² - 1 indices.
    pub fn next() -> Option<Self> {
        let index = u32::try_from(NEXT_OBJECT.fetch_add(1, Ordering::Relaxed)).ok()?;
        (index != u32::MAX).then_some(Self(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn range(start: u64, end: u64) -> TextRange {
        let object = LoadedObject {
            index: ObjectIndex::next().unwrap(),
            load_bias: LoadBias(start),
            build_id: None,
            identity: IdentityWord { address: RuntimeAddr(0), value: 0 },
            unwind: OnceLock::new(),
            frame_header: None,
            text: ElfVaddr(0)..ElfVaddr(end - start),
        };
        TextRange { start: RuntimeAddr(start), end: RuntimeAddr(end), object: Arc::new(object) }
    }

    #[test]
    fn finds_the_range_around_an_address_and_nothing_in_the_gaps() {
        let map = ObjectMap::new(vec![range(0x3000, 0x4000), range(0x1000, 0x2000)], 0);
        let bias_at = |pc| map.find(RuntimeAddr(pc)).map(|object| object.load_bias.0);
        assert_eq!(bias_at(0xfff), None);
        assert_eq!(bias_at(0x1000), Some(0x1000));
        assert_eq!(bias_at(0x1fff), Some(0x1000));
        assert_eq!(bias_at(0x2000), None);
        assert_eq!(bias_at(0x3fff), Some(0x3000));
        assert_eq!(bias_at(0x4000), None);
    }

    #[test]
    fn overlapping_ranges_are_cut() {
        let map = ObjectMap::new(vec![range(0x1000, 0x5000), range(0x2000, 0x3000)], 0);
        assert_eq!(map.find(RuntimeAddr(0x2800)).unwrap().load_bias.0, 0x2000);
        assert!(map.find(RuntimeAddr(0x4000)).is_none());
    }
}
