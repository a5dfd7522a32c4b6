//! Redirects imports of objects to functions of ours, and restores them.
//!
//! An object is in the dynamic linker's list before it is relocated (glibc 2.36, elf/dl-load.c and
//! elf/dl-open.c), and the lock that is held while the list is visited does not prevent its relocation. So a
//! word that is not relocated yet is left alone, and so is a word in pages that the linker has yet to make
//! read-only, since the linker may do so at any moment. Such words are scanned again later.
//!
//! The words to be written are determined first, without the linker's lock, since that allocates. They are
//! written under the lock, if no object has been unloaded since then.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use otlpprof_core::address::{ElfVaddr, RuntimeAddr};
use otlpprof_core::memory::Memory;
use otlpprof_elf::image::{LoadedImage, page_size};
use otlpprof_elf::loader_list::{LoadCounts, LoadedObjects, TRIES, loaded_objects, while_none_is_unloaded};
use otlpprof_elf::objects::memory_maps::MemoryMaps;
use otlpprof_elf::process_memory::ProcessMemory;
use otlpprof_elf::relocations::{SlotKind, import_slots};

/// The number of scans after objects were loaded or unloaded: the linker may bind a word again that the first
/// scan has redirected.
const SCANS: u32 = 3;
/// The number of scans while some objects are not relocated yet.
const MAX_SCANS: u32 = 50;

/// Redirected imports, with the values that they had before.
pub(super) struct Redirection {
    names: Vec<&'static str>,
    /// The address that replaces each function.
    hooks: Vec<u64>,
    /// The groups of names. A group is redirected in all objects before the next one is redirected in any.
    groups: Vec<Range<usize>>,
    saved: HashMap<RuntimeAddr, u64>,
    /// The counts of the objects that have been scanned.
    seen: Option<LoadCounts>,
    /// The number of scans of these objects.
    scans: u32,
    /// Whether the last scan has found an object that was not relocated, or a word that may not be written
    /// yet.
    needs_rescan: bool,
}

/// A word through which an object calls a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// The index of the function's name.
    pub(super) name: usize,
    /// The word's value, or its value before it was redirected.
    pub(super) value: u64,
}

impl Redirection {
    /// Returns a redirection of functions by name, each with the address of its replacement; no import is
    /// redirected yet. A group is redirected in every object before the next group.
    pub(super) fn new(groups: Vec<Vec<(&'static str, u64)>>) -> Self {
        let ends = groups.iter().scan(0, |end, group| {
            let start = *end;
            *end += group.len();
            Some(start..*end)
        });
        let ranges = ends.collect();
        let (names, hooks) = groups.into_iter().flatten().unzip();
        Self {
            names,
            hooks,
            groups: ranges,
            saved: HashMap::new(),
            seen: None,
            scans: 0,
            needs_rescan: false,
        }
    }

    /// Redirects imports of objects that were loaded since the last call: the imports for which `redirects`
    /// returns `true`. Its arguments are the object, all of the object's imports of these names, and the
    /// import in question. `counts` are the present counts of objects, or the counts of a moment ago. Cheap
    /// if there are no new objects.
    pub(super) fn install(
        &mut self,
        counts: LoadCounts,
        redirects: impl Fn(&LoadedImage, &[Import], Import) -> bool,
    ) {
        if self.seen != Some(counts) {
            (self.seen, self.scans, self.needs_rescan) = (Some(counts), 0, false);
        }
        if self.scans >= if self.needs_rescan { MAX_SCANS } else { SCANS } {
            return;
        }
        self.scans += 1;
        self.needs_rescan = false;
        for number in 0..self.groups.len() {
            let group = self.groups[number].clone();
            let written = write_words(|objects| self.words_to_redirect(objects, group.clone(), &redirects));
            // Objects were unloaded during each attempt.
            self.needs_rescan |= written.is_none();
            self.saved.extend(written.into_iter().flatten().map(|word| (word.slot.address, word.before)));
        }
    }

    /// Returns the words that are to be redirected for a group of names, in objects as they are now. Notes
    /// whether some words have to be scanned again.
    fn words_to_redirect(
        &mut self,
        objects: &LoadedObjects,
        group: Range<usize>,
        redirects: &impl Fn(&LoadedImage, &[Import], Import) -> bool,
    ) -> Vec<Word> {
        let Self { names, hooks, saved, needs_rescan, .. } = self;
        let mut pages = Pages::default();
        let mut words = Vec::new();
        for_each_object(objects, names, |image, slots| {
            let import = |(slot, value): &(Slot, u64)| {
                let is_redirected = *value == hooks[slot.name];
                let value = saved.get(&slot.address).filter(|_| is_redirected).copied().unwrap_or(*value);
                Import { name: slot.name, value }
            };
            let imports: Vec<_> = slots.iter().map(import).collect();
            for ((slot, value), import) in
                slots.iter().zip(&imports).filter(|((slot, _), _)| group.contains(&slot.name))
            {
                if is_unrelocated(image, import.value) {
                    // A weak import that no object defines stays 0 for good.
                    let is_final = slot.in_relro && pages.are_read_only(slot.address);
                    *needs_rescan = *needs_rescan || !is_final;
                } else if *value == import.value
                    && import.value != hooks[slot.name]
                    && redirects(image, &imports, *import)
                {
                    if slot.in_relro && !pages.are_read_only(slot.address) {
                        *needs_rescan = true;
                    } else {
                        let (before, after) = (import.value, hooks[slot.name]);
                        words.push(Word { slot: *slot, before, after, is_read_only: slot.in_relro });
                    }
                }
            }
        });
        words
    }

    /// Restores every import. Threads that have loaded a redirected address at this moment may still call our
    /// functions.
    pub(super) fn remove(self) {
        let Self { names, hooks, saved, .. } = self;
        write_words(|objects| {
            let mut pages = Pages::default();
            let mut words = Vec::new();
            for_each_object(objects, &names, |_, slots| {
                // Only a word that still has our value: the object may be another one by now, or other code
                // has redirected the word.
                for (slot, value) in slots.iter().filter(|(slot, value)| *value == hooks[slot.name]) {
                    let Some(after) = saved.get(&slot.address) else { continue };
                    // A redirected object has been relocated. If its pages are writable now, other code has
                    // made them so on purpose.
                    let is_read_only = slot.in_relro && pages.are_read_only(slot.address);
                    words.push(Word { slot: *slot, before: *value, after: *after, is_read_only });
                }
            });
            words
        });
    }
}

/// A word that is to be written.
struct Word {
    slot: Slot,
    /// The value that is replaced, if the word still has it.
    before: u64,
    after: u64,
    /// Whether the word's page is read-only, and is to be made so again.
    is_read_only: bool,
}

/// Writes the words that `choose` finds in the loaded objects. Returns the words that were written; `None` if
/// objects were unloaded during all attempts.
fn write_words(mut choose: impl FnMut(&LoadedObjects) -> Vec<Word>) -> Option<Vec<Word>> {
    (0..TRIES).find_map(|_| {
        let objects = loaded_objects();
        let mut words = choose(&objects);
        // `retain` works in place: it allocates nothing, and dropped words have no destructor.
        while_none_is_unloaded(objects.counts, || {
            words.retain(|word| word.slot.replace(word.before, word.after, word.is_read_only));
        })?;
        Some(words)
    })
}

/// Whether a word has its value from the object's file: zero, or an address in the object to which the load
/// bias has not been added yet.
fn is_unrelocated(image: &LoadedImage, value: u64) -> bool {
    let vaddr = ElfVaddr(value);
    value == 0
        || image.load_bias().0 != 0
            && image
                .program_headers()
                .iter()
                .any(|header| header.is_load() && header.vaddrs().contains(&vaddr))
}

/// Finds out which pages are read-only, by the kernel's list of mappings, which is read at the first query.
#[derive(Default)]
struct Pages {
    maps: Option<MemoryMaps>,
    /// The page of the last query, and its result.
    last: Option<(u64, bool)>,
}

impl Pages {
    /// Whether the page at `address` is read-only. For an object that was in the linker's list before the
    /// query, and so was mapped completely. If its pages are read-only they remain so, and the object is
    /// relocated: the linker makes these pages read-only after the relocation, all at once.
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
#[derive(Clone, Copy)]
struct Slot {
    /// The index of the function's name.
    name: usize,
    address: RuntimeAddr,
    /// Whether the word's page is read-only once the object is relocated.
    in_relro: bool,
}

impl Slot {
    /// Loads the slot's word; `None` if the object has just been unloaded.
    fn value(&self) -> Option<u64> {
        ProcessMemory.load_u64(self.address.0)
    }

    /// Replaces `before` by `value`, if the word still has that value. If the page `is_read_only`, it is made
    /// writable for the write; no other page's protection is changed. To be called while the object cannot be
    /// unloaded.
    fn replace(&self, before: u64, value: u64, is_read_only: bool) -> bool {
        let page = page_of(self.address) as *mut libc::c_void;
        // SAFETY: a whole page of the object, which the caller keeps loaded.
        let protect = |protection| unsafe { libc::mprotect(page, page_size() as usize, protection) == 0 };
        if is_read_only && !protect(libc::PROT_READ | libc::PROT_WRITE) {
            return false;
        }
        // SAFETY: an aligned word of the object's data, which the caller keeps loaded; the dynamic linker and
        // its stubs also access it as a word.
        let word = unsafe { AtomicU64::from_ptr(self.address.0 as *mut u64) };
        let result = word.compare_exchange(before, value, Ordering::AcqRel, Ordering::Relaxed);
        if is_read_only {
            protect(libc::PROT_READ);
        }
        result.is_ok()
    }
}

/// Visits every object that calls any of the functions, with the words through which it calls them and their
/// values. Words in data are left alone, since the application may compare and change them.
fn for_each_object(
    objects: &LoadedObjects,
    names: &[&str],
    mut visit: impl FnMut(&LoadedImage, &[(Slot, u64)]),
) {
    for image in &objects.images {
        // An object with malformed tables still runs.
        let Ok(imports) = import_slots(image, names) else { continue };
        let called = imports.slots.iter().filter(|slot| slot.kind != SlotKind::Data);
        let slots: Vec<_> = called
            .filter_map(|slot| {
                let in_relro = imports.relro.as_ref().is_some_and(|relro| relro.contains(&slot.address));
                let slot = Slot { name: slot.symbol, address: slot.address, in_relro };
                Some((slot, slot.value()?))
            })
            .collect();
        if !slots.is_empty() {
            visit(image, &slots);
        }
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_core::address::LoadBias;

    use super::*;

    fn protection(address: RuntimeAddr) -> Option<libc::c_int> {
        MemoryMaps::read().protection_at(address)
    }

    #[test]
    fn a_page_has_its_old_protection_after_the_change() {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        for before in [libc::PROT_READ, both] {
            // SAFETY: a fresh mapping, which no other code knows.
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
            assert_eq!((slot.value(), protection(slot.address)), (Some(7), Some(before)));
            // SAFETY: the mapping above, to which nothing refers.
            unsafe { libc::munmap(page, page_size() as usize) };
        }
    }

    #[test]
    fn a_word_that_the_linker_has_not_written_is_known() {
        let own = a_word_that_the_linker_has_not_written_is_known as *const () as u64;
        let mut images = loaded_objects().images.into_iter();
        let image = images.find(|image| image.contains(RuntimeAddr(own)));
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
