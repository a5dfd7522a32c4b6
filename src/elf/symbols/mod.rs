//! Names for native frames: local symbolization, outside of the handler.
//!
//! In: an object's details and an ELF virtual address. Out: the function's name, demangled and as linked. A
//! file is used only if it is the one that was loaded; without it the loaded `.dynsym` serves.
//!
//! | Module | Duty |
//! |---|---|
//! | [`by_name`] | where in a file a function is |
//! | [`index`] | functions by address, compactly |
//! | [`tables`] | symbol tables in files and images |
//! | [`demangle`](mod@demangle) | linkage names to written names |

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

/// So many names are kept; then all are dropped, and come back as they are asked for.
const MAX_NAMES: usize = 32 << 10;

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name as written, without parameters.
    pub name: String,
    /// Its name as linked.
    pub linkage_name: String,
    /// Its first address.
    pub start: ElfVaddr,
}

/// Finds symbols, and keeps what it needed for that until it is told that an interval has passed.
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
    /// `None` if it has none.
    symbols: Option<Symbols>,
    was_used: bool,
}

impl Symbolizer {
    /// A symbolizer that has read nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The function that `vaddr` is in. The first question about an object reads its symbol table: some
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

    /// Drops the tables of objects that nobody asked about since the last call. Called once an interval.
    pub fn drop_unused(&self) {
        let state = &mut *self.state.lock();
        state.objects.retain(|_, object| std::mem::take(&mut object.was_used));
    }

    /// Drops what is known of an object that was retired.
    pub fn forget(&self, index: ObjectIndex) {
        let state = &mut *self.state.lock();
        state.objects.remove(&index);
        state.names.retain(|key, _| key.0 != index);
    }

    /// How many objects' tables are held, and their heap bytes.
    pub fn held(&self) -> (usize, usize) {
        let state = self.state.lock();
        let symbols = state.objects.values().filter_map(|object| object.symbols.as_ref());
        symbols.fold((0, 0), |(count, bytes), symbols| (count + 1, bytes + symbols.heap_bytes()))
    }
}
