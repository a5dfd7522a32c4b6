//! ZGC: the current address of an object if the collector has yet to update the reference.
//!
//! A page whose objects are moved has a ZForwarding in its generation's forwarding table. The ZForwarding is
//! a hash table from old to new places, and lives until no reference leads to the page any more. An object
//! without an entry is still in its place, and stays there while the page is retained. Sources:
//! gc/z/zBarrier.inline.hpp (`remap_generation`, `relocate_or_remap`), zForwarding.inline.hpp,
//! zForwardingEntry.hpp, zHash.inline.hpp (JDK 21 and 25); in JDK 21 also gc/x/xHeap.inline.hpp
//! (`remap_object`), xForwarding.inline.hpp, xForwardingEntry.hpp, xHash.inline.hpp.

use otlpprof_core::continuation::{ForwardingLayout, FrozenLayout, References};
use otlpprof_core::memory::Memory;

use super::arch;
use super::continuation::Frozen;
use super::frozen_reason::FrozenReason;
use super::retained_pages::RetainedPage;
use super::stack_walk::Walk;

/// The `rr` bits of a coloured pointer. Both bits are set in a reference from an old object to an old object
/// (gc/z/zAddress.hpp, ZPointerRememberedMask).
const REMEMBERED: u64 = 3 << 4;
/// The fields of a ZForwardingEntry: whether it is in use, the new place, and the object's index.
const POPULATED: u64 = 1;
const TO_SHIFT: u32 = 1;
const TO_MASK: u64 = (1 << 45) - 1;
const INDEX_SHIFT: u32 = 46;
/// The most entries that are probed. Half of a table's entries stay empty, so a longer run is garbage.
const MAX_PROBES: usize = 1024;
/// Whether and where an object of a page that has a ZForwarding has moved.
enum Relocation {
    /// The object's new offset in the heap.
    To(u64),
    Unmoved,
}

impl<M: Memory> Walk<'_, M> {
    /// The current address of the object that the stale reference `value` leads to. `address` is the
    /// reference without its colour.
    pub(super) fn relocated(&self, layout: &FrozenLayout, value: u64, address: u64) -> Frozen<u64> {
        let stale = FrozenReason::StaleReference;
        let forwarding = layout.forwarding.as_ref().ok_or(stale)?;
        let offset = address & forwarding.offset_mask;
        let [young, old] = forwarding.tables;
        let relocation = match layout.references {
            // Marked for the collection that is running, but already with the object's current address.
            References::Mapped { .. } if value & forwarding.remapped_bit != 0 => None,
            References::Mapped { .. } => self.relocation(forwarding, young, offset)?,
            References::Coloured { bad_mask } => {
                let bad_mask = self.memory.load_u64(bad_mask).ok_or(FrozenReason::Unreadable)?;
                let good = arch::coloured_reference::good_remapping(bad_mask).ok_or(stale)?;
                let remapping = arch::coloured_reference::remapping_of(value).ok_or(stale)?;
                // The lower bit alternates with young collections, the higher one with old collections.
                let differs = good ^ remapping;
                if differs & 2 == 0 {
                    self.relocation(forwarding, young, offset)?
                } else if differs & 1 == 0 || value & REMEMBERED == REMEMBERED {
                    self.relocation(forwarding, old, offset)?
                } else {
                    match self.relocation(forwarding, young, offset)? {
                        None => self.relocation(forwarding, old, offset)?,
                        relocation => relocation,
                    }
                }
            }
            References::Narrow { .. } | References::Plain => return Err(stale),
        };
        Ok(match relocation {
            Some(Relocation::To(offset)) => address & !forwarding.offset_mask | offset,
            Some(Relocation::Unmoved) | None => address,
        })
    }

    /// The place of the object at `offset` by a forwarding table. `None` if its page's objects are not being
    /// moved.
    fn relocation(&self, layout: &ForwardingLayout, table: u64, offset: u64) -> Frozen<Option<Relocation>> {
        let stale = FrozenReason::StaleReference;
        let load = |address: u64| self.memory.load_u64(address).ok_or(FrozenReason::Unreadable);
        let slot = table.wrapping_add(offset.wrapping_shr(layout.granule_shift).wrapping_mul(8));
        let forwarding = load(slot)?;
        if forwarding == 0 {
            return Ok(None);
        }
        let field = |field: u32| load(forwarding.wrapping_add(u64::from(field)));
        let (start, shift, length) =
            (field(layout.start)?, field(layout.alignment_shift)?, field(layout.length)?);
        if offset < start || shift >= 64 || !length.is_power_of_two() {
            return Err(stale);
        }
        let index = offset.wrapping_sub(start) >> shift;
        let entries = forwarding.wrapping_add(u64::from(layout.entries));
        let mut at = u64::from(hash(index as u32));
        for _ in 0..MAX_PROBES {
            at &= length.wrapping_sub(1);
            let entry = load(entries.wrapping_add(at.wrapping_mul(8)))?;
            if entry & POPULATED == 0 {
                let page = RetainedPage { slot, forwarding };
                return if self.is_retained(layout, &page) && self.retained_pages.remember(page) {
                    Ok(Some(Relocation::Unmoved))
                } else {
                    Err(stale)
                };
            }
            if entry >> INDEX_SHIFT == index {
                return Ok(Some(Relocation::To(entry >> TO_SHIFT & TO_MASK)));
            }
            at = at.wrapping_add(1);
        }
        Err(stale)
    }

    /// Whether the page is unchanged and still retained. It is not once all its objects have been moved, or
    /// while some are moved within the page (a count below 0).
    fn is_retained(&self, layout: &ForwardingLayout, page: &RetainedPage) -> bool {
        let count = self.memory.load_u32(page.forwarding.wrapping_add(u64::from(layout.ref_count)));
        count.is_some_and(|count| count as i32 > 0)
            && self.memory.load_u64(page.slot) == Some(page.forwarding)
    }

    /// Whether `value` is a reference that the collector has yet to update.
    pub(super) fn is_stale(&self, value: u64, bad_mask: u64) -> Frozen<bool> {
        let bad_mask = self.memory.load_u64(bad_mask).ok_or(FrozenReason::Unreadable)?;
        let first = &self.retained_pages.bad_mask;
        if first.get() == 0 {
            first.set(bad_mask);
        }
        Ok(value & bad_mask != 0)
    }

    /// Starts to read objects that are independent of the objects read before, and forgets the remembered
    /// pages.
    pub(super) fn forget_pages(&self) {
        // No page is remembered before a reference has been followed.
        if self.retained_pages.bad_mask.replace(0) != 0 {
            self.retained_pages.pages.set(Default::default());
        }
    }

    /// Whether all objects that were read in their old places are still there, and no collection has begun to
    /// move objects meanwhile. Only then do the values that were read belong to these objects.
    pub(super) fn are_pages_retained(&self, layout: &FrozenLayout) -> bool {
        let (References::Mapped { bad_mask } | References::Coloured { bad_mask }) = layout.references else {
            return true;
        };
        let first = self.retained_pages.bad_mask.get();
        if first == 0 {
            return true;
        }
        let pages = self.retained_pages.pages.get();
        self.memory.load_u64(bad_mask) == Some(first)
            && pages.iter().filter(|page| page.forwarding != 0).all(|page| {
                layout.forwarding.as_ref().is_some_and(|forwarding| self.is_retained(forwarding, page))
            })
    }
}

/// ZHash::uint32_to_uint32.
const fn hash(key: u32) -> u32 {
    let key = (!key).wrapping_add(key << 15);
    let key = key ^ key >> 12;
    let key = key.wrapping_add(key << 2);
    let key = key ^ key >> 4;
    let key = key.wrapping_mul(2057);
    key ^ key >> 16
}
