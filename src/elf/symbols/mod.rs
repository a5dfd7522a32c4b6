//! Names for native frames: local symbolization, outside of the handler.
//!
//! In: an object's details and an ELF virtual address. Out: the function's source name and its linkage name.
//! A file is used only if it is the file that was loaded; otherwise the `.dynsym` in memory is used.
//!
//! | Module | Duty |
//! |---|---|
//! | [`by_name`] | the offset of a function in a file |
//! | [`index`] | functions by address, in compact form |
//! | [`tables`] | symbol tables in files and images |
//! | [`demangle`](mod@demangle) | converts linkage names to source names |

pub mod by_name;
pub mod demangle;
pub mod index;
pub mod tables;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

pub use self::demangle::demangle;
use self::tables::Symbols;
use super::objects::ObjectDetails;
use crate::core::address::ElfVaddr;
use crate::core::object::ObjectIndex;

/// The most cached names. When the cache is full, it is cleared and fills again on demand.
const MAX_NAMES: usize = 32 << 10;

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The name in the source code, without parameters.
    pub name: String,
    /// The linkage name.
    pub linkage_name: String,
    /// The function's first address.
    pub start: ElfVaddr,
}

/// Resolves addresses to symbols. Caches the tables of objects that were used in this interval or the one
/// before.
#[derive(Debug, Default)]
pub struct Symbolizer {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    objects: HashMap<ObjectIndex, Object>,
    names: HashMap<(ObjectIndex, ElfVaddr), Option<Arc<Symbol>>>,
}

#[derive(Debug)]
struct Object {
    /// `None` if the object has no symbols.
    symbols: Option<Symbols>,
    was_used: bool,
}

impl Symbolizer {
    /// A symbolizer with empty caches.
    pub fn new() -> Self {
        Self::default()
    }

    /// The function that contains `vaddr`. The first call for an object reads the object's symbol table: some
    /// milliseconds for the largest.
    pub fn symbol(&self, details: &ObjectDetails, vaddr: ElfVaddr) -> Option<Arc<Symbol>> {
        let state = &mut *self.state.lock();
        let key = (details.index, vaddr);
        if let Some(known) = state.names.get(&key) {
            return known.clone();
        }
        let object = state.objects.entry(details.index).or_insert_with(|| Object {
            symbols: Symbols::of(details)
                .inspect_err(|error| log::debug!("no symbols of {}: {error}", details.path.display()))
                .ok(),
            was_used: true,
        });
        object.was_used = true;
        let found = object.symbols.as_ref().and_then(|symbols| symbols.find(vaddr));
        let symbol = found.map(|(start, linkage_name)| {
            Arc::new(Symbol { name: demangle(&linkage_name), linkage_name, start })
        });
        if state.names.len() >= MAX_NAMES {
            state.names.clear();
        }
        state.names.insert(key, symbol.clone());
        symbol
    }

    /// Drops the tables of objects that were not used since the last call. To be called once an interval.
    pub fn drop_unused(&self) {
        let state = &mut *self.state.lock();
        state.objects.retain(|_, object| std::mem::take(&mut object.was_used));
    }

    /// Drops everything cached for a retired object.
    pub fn forget(&self, index: ObjectIndex) {
        let state = &mut *self.state.lock();
        state.objects.remove(&index);
        state.names.retain(|key, _| key.0 != index);
    }

    /// The number of objects with cached tables, and the size of these tables on the heap, in bytes.
    pub fn held(&self) -> (usize, usize) {
        let state = self.state.lock();
        let symbols = state.objects.values().filter_map(|object| object.symbols.as_ref());
        symbols.fold((0, 0), |(count, bytes), symbols| (count + 1, bytes + symbols.heap_bytes()))
    }
}
