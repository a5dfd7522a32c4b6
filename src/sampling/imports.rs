//! Leads what objects import to functions of ours, and gives it back.
//!
//! An object is in the dynamic linker's list before it is relocated (glibc 2.36, elf/dl-load.c and elf/dl-open.c), and what is
//! held while the list is visited does not keep it from being so: a word that is not relocated yet is left alone, and so is
//! one in pages that the linker is still to make read-only, since it may do that at any moment. They are looked at again.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::core::address::{ElfVaddr, RuntimeAddr};
use crate::elf::image::{LoadCounts, LoadedImage, for_each_loaded_object, page_size};
use crate::elf::objects::memory_maps::MemoryMaps;
use crate::elf::relocations::{SlotKind, import_slots};

/// How often objects are looked at when some have come or gone: the linker may bind what was led by the first look anew.
const LOOKS: u32 = 3;
/// And how often as long as some are not relocated.
const MOST_LOOKS: u32 = 50;

/// The imports that lead to us, with what they held before.
pub(super) struct Redirection {
    names: Vec<&'static str>,
    /// What stands in for each name.
    hooks: Vec<u64>,
    /// The names that are led in all objects before the next ones are in any.
    groups: Vec<Range<usize>>,
    saved: HashMap<RuntimeAddr, u64>,
    /// The objects that have been looked through.
    seen: Option<LoadCounts>,
    /// How often they have been.
    looks: u32,
    /// Whether the last look has found some that were not relocated.
    is_left: bool,
}

/// A word through which an object calls a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// The function's place among the names.
    pub(super) name: usize,
    /// What the word holds, or held before it led to us.
    pub(super) value: u64,
}

impl Redirection {
    /// Of functions by name, and what stands in for each; nothing is led there yet. Those of a group are led in every object
    /// before those of the next.
    pub(super) fn new(groups: Vec<Vec<(&'static str, u64)>>) -> Self {
        let ends = groups.iter().scan(0, |end, group| {
            let start = *end;
            *end += group.len();
            Some(start..*end)
        });
        let ranges = ends.collect();
        let (names, hooks) = groups.into_iter().flatten().unzip();
        Self { names, hooks, groups: ranges, saved: HashMap::new(), seen: None, looks: 0, is_left: false }
    }

    /// Leads the imports of objects that were loaded since the last time to us: those for which `leads`, by the object, all
    /// of its imports of these names and the one. `counts` are those of now, or from just before. Cheap if there is none.
    pub(super) fn install(
        &mut self,
        counts: LoadCounts,
        leads: impl Fn(&LoadedImage, &[Import], Import) -> bool,
    ) {
        if self.seen != Some(counts) {
            (self.seen, self.looks, self.is_left) = (Some(counts), 0, false);
        }
        if self.looks >= if self.is_left { MOST_LOOKS } else { LOOKS } {
            return;
        }
        self.looks += 1;
        self.is_left = false;
        let Self { names, hooks, groups, saved, is_left, .. } = self;
        for group in groups {
            // Of this look at the list: an object may be loaded between two, where another was.
            let mut pages = Pages::default();
            for_each_object(names, |image, slots| {
                let import = |slot: &Slot| {
                    let value = slot.value();
                    let led = value == hooks[slot.name];
                    let value = saved.get(&slot.address).filter(|_| led).copied().unwrap_or(value);
                    Import { name: slot.name, value }
                };
                let imports: Vec<_> = slots.iter().map(import).collect();
                for (slot, import) in
                    slots.iter().zip(&imports).filter(|(slot, _)| group.contains(&slot.name))
                {
                    if is_unrelocated(image, import.value) {
                        // A weak import that nobody defines stays 0 for good.
                        let is_final = slot.in_relro && pages.are_read_only(slot.address);
                        *is_left = *is_left || !is_final;
                    } else if slot.value() == import.value
                        && import.value != hooks[slot.name]
                        && leads(image, &imports, *import)
                    {
                        if slot.in_relro && !pages.are_read_only(slot.address) {
                            *is_left = true;
                        } else if slot.replace(import.value, hooks[slot.name], slot.in_relro) {
                            saved.insert(slot.address, import.value);
                        }
                    }
                }
            });
        }
    }

    /// Gives every import back what it held. Threads that are on their way at this moment may still come by.
    pub(super) fn remove(self) {
        let Self { names, hooks, saved, .. } = self;
        let mut pages = Pages::default();
        for_each_object(&names, |_, slots| {
            for slot in slots {
                // Only if it is ours: the object may be another one by now, or somebody has taken it over.
                if let Some(value) = saved.get(&slot.address).filter(|_| slot.value() == hooks[slot.name]) {
                    // One that was led is relocated; who has made its pages writable since has reasons.
                    let is_read_only = slot.in_relro && pages.are_read_only(slot.address);
                    slot.replace(hooks[slot.name], *value, is_read_only);
                }
            }
        });
    }
}

/// Whether a word is as it lies in the object's file: nothing, or a place in the object that its load bias is still to be
/// added to.
fn is_unrelocated(image: &LoadedImage, value: u64) -> bool {
    let vaddr = ElfVaddr(value);
    value == 0
        || image.load_bias().0 != 0
            && image
                .program_headers()
                .iter()
                .any(|header| header.is_load() && header.vaddrs().contains(&vaddr))
}

/// Which pages are read-only: as the kernel tells it when somebody first asks.
#[derive(Default)]
struct Pages {
    maps: Option<MemoryMaps>,
    /// The page that was last asked for, and whether it is.
    last: Option<(u64, bool)>,
}

impl Pages {
    /// To be asked while the object is visited: it was in the linker's list when the first one was, all mapped. Its read-only
    /// pages stay so then, and it is relocated: the linker makes them read-only behind that, all at once.
    fn are_read_only(&mut self, address: RuntimeAddr) -> bool {
        let page = page_of(address);
        if let Some((_, is_read_only)) = self.last.filter(|(last, _)| *last == page) {
            return is_read_only;
        }
        let maps = self.maps.get_or_insert_with(MemoryMaps::read);
        let is_read_only = maps.protection_at(address) == Some(libc::PROT_READ);
        self.last = Some((page, is_read_only));
        is_read_only
    }
}

fn page_of(address: RuntimeAddr) -> u64 {
    address.0 & !(page_size() - 1)
}

/// A word through which an object calls a function.
struct Slot {
    /// The function's place among the names.
    name: usize,
    address: RuntimeAddr,
    /// Whether its page is read-only once the object is relocated.
    in_relro: bool,
}

impl Slot {
    fn word(&self) -> &AtomicU64 {
        // SAFETY: an aligned word of the object's data, which stays loaded while it is visited; the dynamic linker and its
        // stubs read and write it as a word, too.
        unsafe { AtomicU64::from_ptr(self.address.0 as *mut u64) }
    }

    fn value(&self) -> u64 {
        self.word().load(Ordering::Relaxed)
    }

    /// Puts `value` in place of `before`, if that is still there. A page that `is_read_only` is writable meanwhile; no other
    /// page's protection is touched.
    fn replace(&self, before: u64, value: u64, is_read_only: bool) -> bool {
        let page = page_of(self.address) as *mut libc::c_void;
        // SAFETY: a whole page of the object, which stays loaded while it is visited.
        let protect = |protection| unsafe { libc::mprotect(page, page_size() as usize, protection) == 0 };
        if is_read_only && !protect(libc::PROT_READ | libc::PROT_WRITE) {
            return false;
        }
        let result = self.word().compare_exchange(before, value, Ordering::AcqRel, Ordering::Relaxed);
        if is_read_only {
            protect(libc::PROT_READ);
        }
        result.is_ok()
    }
}

/// Visits every object with the words through which it calls the functions, by their place among the names, if there are any.
/// Words in data are left alone: they are the application's own to compare and to change.
fn for_each_object(names: &[&str], mut visit: impl FnMut(&LoadedImage, &[Slot])) {
    for_each_loaded_object(|image: &LoadedImage| {
        // An object whose tables are broken runs all the same.
        let Ok(imports) = import_slots(image, names) else {
            return ControlFlow::<()>::Continue(());
        };
        let called = imports.slots.iter().filter(|slot| slot.kind != SlotKind::Data);
        let slots: Vec<_> = called
            .map(|slot| Slot {
                name: slot.symbol,
                address: slot.address,
                in_relro: imports.relro.as_ref().is_some_and(|relro| relro.contains(&slot.address)),
            })
            .collect();
        if !slots.is_empty() {
            visit(image, &slots);
        }
        ControlFlow::Continue(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::address::LoadBias;

    fn protection(address: RuntimeAddr) -> Option<libc::c_int> {
        MemoryMaps::read().protection_at(address)
    }

    #[test]
    fn a_page_is_as_read_only_behind_the_change_as_before() {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        for before in [libc::PROT_READ, both] {
            // SAFETY: a fresh mapping, which nobody else knows.
            let page = unsafe {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                libc::mmap(std::ptr::null_mut(), page_size() as usize, before, flags, -1, 0)
            };
            assert_ne!(page, libc::MAP_FAILED);
            let slot = Slot { name: 0, address: RuntimeAddr(page as u64 + 64), in_relro: true };
            let is_read_only = Pages::default().are_read_only(slot.address);
            assert_eq!(is_read_only, before == libc::PROT_READ);
            assert!(slot.replace(0, 7, is_read_only));
            assert!(!slot.replace(0, 8, is_read_only), "another value is there");
            assert_eq!((slot.value(), protection(slot.address)), (7, Some(before)));
            // SAFETY: the mapping above, which nothing refers to.
            unsafe { libc::munmap(page, page_size() as usize) };
        }
    }

    #[test]
    fn a_word_that_the_linker_has_not_written_is_known() {
        let own = a_word_that_the_linker_has_not_written_is_known as *const () as u64;
        let image = for_each_loaded_object(|image| {
            if image.contains(RuntimeAddr(own)) {
                ControlFlow::Break(image.clone())
            } else {
                ControlFlow::Continue(())
            }
        });
        let image = image.unwrap();
        assert_ne!(image.load_bias(), LoadBias(0), "the tests' program may lie anywhere");
        assert!(is_unrelocated(&image, 0));
        assert!(is_unrelocated(&image, image.load_bias().to_elf(RuntimeAddr(own)).0));
        assert!(!is_unrelocated(&image, own));
    }

    #[test]
    fn groups_keep_the_names_in_order() {
        let redirection = Redirection::new(vec![vec![("a", 1), ("b", 2)], vec![("c", 3)]]);
        assert_eq!(redirection.names, ["a", "b", "c"]);
        assert_eq!((redirection.hooks, redirection.groups), (vec![1, 2, 3], vec![0..2, 2..3]));
    }
}
