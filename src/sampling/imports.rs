//! Leads what objects import to functions of ours, and gives it back.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::core::address::RuntimeAddr;
use crate::elf::image::{LoadCounts, LoadedImage, for_each_loaded_object};
use crate::elf::relocations::{SlotKind, import_slots};

/// The imports that lead to us, with what they held before.
pub(super) struct Redirection {
    names: Vec<&'static str>,
    /// What stands in for each name.
    hooks: Vec<u64>,
    saved: HashMap<RuntimeAddr, u64>,
    /// The objects that have been looked through.
    seen: Option<LoadCounts>,
}

impl Redirection {
    /// Of functions by name, and what stands in for each; nothing is led there yet.
    pub(super) fn new(functions: Vec<(&'static str, u64)>) -> Self {
        let (names, hooks) = functions.into_iter().unzip();
        Self { names, hooks, saved: HashMap::new(), seen: None }
    }

    /// Leads the imports of every object to us that was loaded since the last time: those for which `leads`, by the object,
    /// the function's place among the names and what the import holds. `counts` are those of now, or from just before. Cheap
    /// if there is none.
    pub(super) fn install(&mut self, counts: LoadCounts, leads: impl Fn(&LoadedImage, usize, u64) -> bool) {
        if self.seen == Some(counts) {
            return;
        }
        let Self { names, hooks, saved, .. } = self;
        for_each_import(names, |image, name, slot| {
            let value = slot.value();
            if value != hooks[name] && leads(image, name, value) {
                slot.store(hooks[name]);
                saved.insert(slot.address, value);
            }
        });
        self.seen = Some(counts);
    }

    /// Gives every import back what it held. Threads that are on their way at this moment may still come by.
    pub(super) fn remove(self) {
        let Self { names, hooks, saved, .. } = self;
        for_each_import(&names, |_, name, slot| {
            // Only if it is ours: the object may be another one by now, or somebody has taken it over.
            if let Some(value) = saved.get(&slot.address).filter(|_| slot.value() == hooks[name]) {
                slot.replace(hooks[name], *value);
            }
        });
    }
}

/// A word through which an object calls a function.
struct Slot {
    address: RuntimeAddr,
    /// The pages around it that are read-only.
    sealed: Option<Range<RuntimeAddr>>,
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

    fn store(&self, value: u64) {
        self.while_writable(|word| word.store(value, Ordering::Release));
    }

    fn replace(&self, before: u64, value: u64) {
        self.while_writable(|word| {
            let _ = word.compare_exchange(before, value, Ordering::AcqRel, Ordering::Relaxed);
        });
    }

    /// Nobody else unseals or seals the pages meanwhile: the dynamic linker's lock is held.
    fn while_writable(&self, write: impl FnOnce(&AtomicU64)) {
        let protect = |protection| match &self.sealed {
            // SAFETY: whole pages of the object, which stays loaded while it is visited.
            Some(pages) => unsafe {
                let length = (pages.end.0 - pages.start.0) as usize;
                libc::mprotect(pages.start.0 as *mut libc::c_void, length, protection) == 0
            },
            None => true,
        };
        if protect(libc::PROT_READ | libc::PROT_WRITE) {
            write(self.word());
            protect(libc::PROT_READ);
        }
    }
}

/// Visits every word through which an object calls one of the functions, by its place among the names. Words in data are left
/// alone: they are the application's own to compare and to change.
fn for_each_import(names: &[&str], mut visit: impl FnMut(&LoadedImage, usize, &Slot)) {
    for_each_loaded_object(|image: &LoadedImage| {
        // An object whose tables are broken runs all the same.
        let Ok(imports) = import_slots(image, names) else {
            return ControlFlow::<()>::Continue(());
        };
        for slot in imports.slots.iter().filter(|slot| slot.kind != SlotKind::Data) {
            let sealed = imports.relro.clone().filter(|relro| relro.contains(&slot.address));
            visit(image, slot.symbol, &Slot { address: slot.address, sealed });
        }
        ControlFlow::Continue(())
    });
}
