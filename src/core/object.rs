//! The loaded ELF objects as a handler sees them: an immutable, sorted map from code addresses to objects.
//!
//! `elf::objects` builds a new [`ObjectMap`] when objects come or go and publishes it; the old one is freed
//! once no handler can still hold it. An [`ObjectIndex`] is given out once in a process's life and never
//! reused, so a frame that carries one can be resolved long after the object is gone.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::address::{ElfVaddr, LoadBias, RuntimeAddr};
use super::build_id::BuildId;
use super::unwind::UnwindTable;

/// Names one loading of one object, for the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct ObjectIndex(pub u32);

/// Eight bytes of an object's mapped image and what they were when it was scanned. A handler compares them
/// before it trusts the map: another object may have been mapped in the same place since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentityWord {
    /// Where the eight bytes are: in the build-id's note, else in the ELF header (`e_shoff`, which differs
    /// with the file's size).
    pub address: RuntimeAddr,
    /// Their value.
    pub value: u64,
}

/// One loaded object.
#[derive(Debug)]
pub struct LoadedObject {
    /// Its name for the life of the process.
    pub index: ObjectIndex,
    /// Run-time minus ELF virtual address.
    pub load_bias: LoadBias,
    /// Its GNU build-id; the record lives for ever, so that a pointer to it is a good name.
    pub build_id: Option<&'static BuildId>,
    /// What tells it from another object mapped in its place.
    pub identity: IdentityWord,
    /// Its unwind table, once compiled. An object without call frame information gets an empty one.
    pub unwind: OnceLock<UnwindTable>,
    /// Where its `.eh_frame_hdr` is mapped: for as long as there is no unwind table, and for what that does not have.
    pub frame_header: Option<RuntimeAddr>,
    /// The executable segments' range, as ELF virtual addresses.
    pub text: std::ops::Range<ElfVaddr>,
}

/// A range of executable run-time addresses that belongs to one object.
#[derive(Clone, Debug)]
pub struct TextRange {
    /// First address.
    pub start: RuntimeAddr,
    /// One past the last address.
    pub end: RuntimeAddr,
    /// Whose code it is.
    pub object: std::sync::Arc<LoadedObject>,
}

/// All executable ranges, sorted, disjoint.
#[derive(Debug, Default)]
pub struct ObjectMap {
    ranges: Box<[TextRange]>,
    /// The number of this map: later ones have higher numbers. A sample that a handler took with this map
    /// refers to no object that was gone before.
    pub generation: u64,
}

impl ObjectMap {
    /// A map of `ranges`, which this sorts. Overlapping ranges are cut at the next one's start.
    pub fn new(mut ranges: Vec<TextRange>, generation: u64) -> Self {
        ranges.sort_by_key(|range| range.start);
        let mut next_start = RuntimeAddr(u64::MAX);
        for range in ranges.iter_mut().rev() {
            range.end = range.end.min(next_start);
            next_start = range.start;
        }
        Self { ranges: ranges.into_boxed_slice(), generation }
    }

    /// The object whose code `pc` is in. Allocates nothing, never panics; the caller still compares
    /// [`LoadedObject::identity`].
    pub fn find(&self, pc: RuntimeAddr) -> Option<&LoadedObject> {
        let next = self.ranges.partition_point(|range| range.start <= pc);
        let range = self.ranges.get(next.checked_sub(1)?)?;
        (pc < range.end).then_some(&*range.object)
    }

    /// The ranges, ascending.
    pub fn ranges(&self) -> &[TextRange] {
        &self.ranges
    }
}

/// Gives out object indices. One counter serves the process, whatever sessions start and stop in it.
static NEXT_OBJECT: AtomicU64 = AtomicU64::new(0);

impl ObjectIndex {
    /// An index that was never given out before; `None` after 2³² - 1 of them.
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
