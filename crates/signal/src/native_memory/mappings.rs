//! The mappings that were sampled and have not been unmapped, by their pages.
//!
//! Unmapping takes any range: parts of mappings, or several mappings. So the whole table is searched, which
//! takes little time compared to the system call. A mapping is one word, so that it changes atomically.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The largest number of mappings.
const SLOTS: usize = 4096;

/// The size of a page here, whatever the kernel's is: mappings begin at multiples of it.
const PAGE_BITS: u32 = 12;
/// A word is `first page << COUNT_BITS | pages`.
const COUNT_BITS: u32 = 28;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

const FREE: u64 = 0;
/// A thread is filling the slot. No mapping is at page 0.
const BUSY: u64 = 1;

struct MappingSlot {
    pages: AtomicU64,
    number: AtomicU32,
    /// The number of pages that the mapping had when it was sampled.
    sampled_pages: AtomicU32,
}

impl MappingSlot {
    const fn new() -> Self {
        Self { pages: AtomicU64::new(FREE), number: AtomicU32::new(0), sampled_pages: AtomicU32::new(0) }
    }
}

/// A table of mappings, each with its sample's number.
pub struct Mappings {
    slots: [MappingSlot; SLOTS],
    /// The index from which on no slot has ever been used.
    used: AtomicUsize,
}

/// The mappings of this process.
pub static MAPPINGS: Mappings = Mappings::new();

/// A mapping, before it was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampledMapping {
    pages: Pages,
    number: u32,
    sampled_pages: u32,
}

/// Pages `first..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pages {
    first: u64,
    end: u64,
}

impl Pages {
    /// Returns the pages that contain the bytes. A mapping larger than a tebibyte is treated as one of that
    /// size.
    fn of(address: usize, length: usize) -> Option<Self> {
        let first = address as u64 >> PAGE_BITS;
        let last = (address as u64).checked_add((length as u64).checked_sub(1)?)? >> PAGE_BITS;
        let end = last.wrapping_add(1).min(first.wrapping_add(COUNT_MASK));
        (first != 0 && end > first).then_some(Self { first, end })
    }

    fn from_word(word: u64) -> Option<Self> {
        let first = word >> COUNT_BITS;
        (first != 0).then_some(Self { first, end: first.wrapping_add(word & COUNT_MASK) })
    }

    fn word(self) -> u64 {
        self.first.wrapping_shl(COUNT_BITS) | self.count()
    }

    fn count(self) -> u64 {
        self.end.wrapping_sub(self.first) & COUNT_MASK
    }

    /// Returns the pages that remain when `gone` is unmapped; `None` if none remain. If a hole is made in the
    /// middle, only the number of remaining pages is right.
    fn without(self, gone: Self) -> Option<Self> {
        let left = match (gone.first <= self.first, gone.end >= self.end) {
            (true, true) => return None,
            (true, false) => Self { first: gone.end.max(self.first), ..self },
            (false, true) => Self { end: gone.first.min(self.end), ..self },
            (false, false) => Self { end: self.end.wrapping_sub(gone.count()), ..self },
        };
        Some(left)
    }
}

impl Mappings {
    const fn new() -> Self {
        Self { slots: [const { MappingSlot::new() }; SLOTS], used: AtomicUsize::new(0) }
    }

    /// Remembers a mapping that no other thread knows yet. Returns `false` if there is no room.
    pub(super) fn insert(&self, address: usize, length: usize, number: u32) -> bool {
        let Some(pages) = Pages::of(address, length) else { return false };
        self.put_back(&SampledMapping { pages, number, sampled_pages: pages.count() as u32 })
    }

    /// Remembers a mapping again.
    pub(super) fn put_back(&self, mapping: &SampledMapping) -> bool {
        self.slots.iter().enumerate().any(|(index, slot)| {
            let is_mine =
                slot.pages.compare_exchange(FREE, BUSY, Ordering::Acquire, Ordering::Relaxed).is_ok();
            if is_mine {
                slot.number.store(mapping.number, Ordering::Relaxed);
                slot.sampled_pages.store(mapping.sampled_pages, Ordering::Relaxed);
                self.used.fetch_max(index.wrapping_add(1), Ordering::Relaxed);
                slot.pages.store(mapping.pages.word(), Ordering::Release);
            }
            is_mine
        })
    }

    fn in_use(&self) -> impl Iterator<Item = &MappingSlot> {
        self.slots.iter().take(self.used.load(Ordering::Relaxed))
    }

    /// Removes the pages in the range, of which the kernel unmaps whole pages. Returns one of the mappings of
    /// which nothing remains.
    pub(super) fn unmap(&self, address: usize, length: usize) -> Option<SampledMapping> {
        let gone = Pages::of(address, length)?;
        let mut removed = None;
        for slot in self.in_use() {
            let mut word = slot.pages.load(Ordering::Acquire);
            while let Some(pages) =
                Pages::from_word(word).filter(|pages| pages.first < gone.end && gone.first < pages.end)
            {
                let number = slot.number.load(Ordering::Relaxed);
                let sampled_pages = slot.sampled_pages.load(Ordering::Relaxed);
                let left = pages.without(gone);
                let after = left.map_or(FREE, Pages::word);
                match slot.pages.compare_exchange(word, after, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => {
                        if left.is_none() {
                            removed = Some(SampledMapping { pages, number, sampled_pages });
                        }
                        break;
                    }
                    Err(now) => word = now,
                }
            }
        }
        removed
    }

    /// Calls `visit` for each remembered mapping with its number, and with the fraction of it that is still
    /// mapped. Ordinary zone.
    pub fn for_each(&self, mut visit: impl FnMut(u32, f64)) {
        for slot in self.in_use() {
            if let Some(pages) = Pages::from_word(slot.pages.load(Ordering::Acquire)) {
                let sampled = slot.sampled_pages.load(Ordering::Relaxed).max(1);
                visit(slot.number.load(Ordering::Relaxed), pages.count() as f64 / f64::from(sampled));
            }
        }
    }

    /// Forgets all mappings. No thread inserts meanwhile.
    pub(super) fn clear(&self) {
        for slot in self.in_use() {
            slot.pages.store(FREE, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::disallowed_methods, clippy::disallowed_types)]
mod tests {
    use super::*;

    const PAGE: usize = 1 << PAGE_BITS;
    const AT: usize = 0x7f12_3456_7000;

    fn left(mappings: &Mappings) -> Vec<(u32, f64)> {
        let mut left = Vec::new();
        mappings.for_each(|number, share| left.push((number, share)));
        left
    }

    #[test]
    fn the_part_of_a_mapping_that_was_not_unmapped_remains() {
        // The range that is unmapped, and the fraction that remains.
        let cases = [
            (AT, 8 * PAGE, 0.0),
            (AT - PAGE, 100 * PAGE, 0.0),
            (AT, 2 * PAGE, 0.75),
            (AT + 6 * PAGE, 4 * PAGE, 0.75),
            (AT + 3 * PAGE, PAGE, 0.875),
            (AT + 8 * PAGE, PAGE, 1.0),
            (AT - PAGE, PAGE, 1.0),
            (AT, 0, 1.0),
        ];
        for (address, length, share) in cases {
            let mappings = Mappings::new();
            // The last page is used in part.
            assert!(mappings.insert(AT, 8 * PAGE - 100, 5));
            mappings.unmap(address, length);
            let expected = (share > 0.0).then_some((5, share));
            assert_eq!(left(&mappings), Vec::from_iter(expected), "{address:x} {length:x}");
        }
    }

    #[test]
    fn a_range_may_have_several_mappings_and_one_can_be_put_back() {
        let mappings = Mappings::new();
        for number in 1..=3 {
            assert!(mappings.insert(AT + number * 10 * PAGE, PAGE, number as u32));
        }
        let removed = mappings.unmap(AT + 20 * PAGE, PAGE).unwrap();
        assert_eq!(left(&mappings), [(1, 1.0), (3, 1.0)]);
        assert!(mappings.put_back(&removed));
        assert_eq!(left(&mappings), [(1, 1.0), (2, 1.0), (3, 1.0)]);
        mappings.unmap(AT + 5 * PAGE, 20 * PAGE);
        assert_eq!(left(&mappings), [(3, 1.0)]);
        mappings.clear();
        assert!(left(&mappings).is_empty());
    }

    #[test]
    fn a_full_table_takes_no_more() {
        let mappings = Mappings::new();
        for number in 0..SLOTS {
            assert!(mappings.insert(AT + number * PAGE, PAGE, 1));
        }
        assert!(!mappings.insert(AT + SLOTS * PAGE, PAGE, 1));
        assert!(!mappings.insert(0, PAGE, 1), "nothing is mapped at 0");
    }
}
