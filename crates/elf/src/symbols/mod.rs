//! Names for native frames: local symbolization, outside of the handler.
//!
//! In: an object's details and an ELF virtual address. Out: the function's source name and its linkage name.
//! A file is used only if it is the file that was loaded; otherwise the `.dynsym` in memory is used. Where
//! the object's own table has only exported functions, a debug file or MiniDebugInfo has the others
//! ([`beside`]). That may take long to read, so another thread can read it ahead
//! ([`Symbolizer::prepare`], [`Symbolizer::prepare_next`]).
//!
//! | Module | Duty |
//! |---|---|
//! | [`by_name`] | the offset of a function in a file |
//! | [`index`] | functions by address, in compact form |
//! | [`mapping_symbols`] | the symbols that are no functions, by processor |
//! | [`tables`] | symbol tables in files and images |
//! | [`mod@beside`] | the symbol tables of debug files and of MiniDebugInfo |
//! | [`demangle`](mod@demangle) | converts linkage names to source names |

pub mod beside;
pub mod by_name;
pub mod demangle;
pub mod index;
pub mod mapping_symbols;
pub mod tables;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use otlpprof_core::address::ElfVaddr;
use otlpprof_core::object::ObjectIndex;
use parking_lot::Mutex;

use self::beside::Beside;
pub use self::demangle::demangle;
use self::tables::Symbols;
use super::objects::ObjectDetails;

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
    /// The folder in which debug files are installed; `None` if no debug file is used.
    debug_files: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    objects: HashMap<ObjectIndex, Arc<Object>>,
    names: HashMap<(ObjectIndex, ElfVaddr), Option<Arc<Symbol>>>,
    /// Objects whose tables beside are to be read ahead.
    requested: Vec<(Arc<ObjectDetails>, Arc<Object>)>,
}

/// Whether an object's tables have been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preparation {
    /// They have been read, or the name is known without them.
    Done,
    /// It was requested earlier that they be read.
    Due,
    /// It has been requested now that they be read.
    Requested,
}

#[derive(Debug)]
struct Object {
    /// `None` if the object has no symbols of its own.
    own: Option<Symbols>,
    /// Empty until it is read; `None` if there is nothing beside the object.
    beside: OnceLock<Option<Beside>>,
    was_used: AtomicBool,
    is_requested: AtomicBool,
}

impl Object {
    fn new(details: &ObjectDetails) -> Self {
        let own = Symbols::of(details)
            .inspect_err(|error| log::debug!("no symbols of {}: {error}", details.path.display()))
            .ok();
        let beside = OnceLock::new();
        if own.as_ref().is_some_and(Symbols::is_whole) {
            // SANITY: the cell is new.
            let _ = beside.set(None);
        }
        Self { own, beside, was_used: AtomicBool::new(true), is_requested: AtomicBool::new(false) }
    }

    fn find(&self, beside: Option<&Beside>, vaddr: ElfVaddr) -> Option<(ElfVaddr, String)> {
        match beside {
            Some(beside) => beside.find(self.own.as_ref(), vaddr),
            None => self.own.as_ref()?.find(vaddr),
        }
    }
}

impl Symbolizer {
    /// A symbolizer with empty caches. `debug_files` is the folder in which debug files are installed,
    /// usually [`DEBUG_ROOT`](super::debug_file_places::DEBUG_ROOT); with `None` no debug file is used, not
    /// even one beside its object.
    pub fn new(debug_files: Option<PathBuf>) -> Self {
        Self { debug_files, state: Mutex::default() }
    }

    /// The function that contains `vaddr`. The first call for an object reads the object's symbol table: some
    /// milliseconds for the largest. If that table has only exported functions, the call also reads the
    /// tables beside the object, or waits until another thread has: up to a second.
    pub fn symbol(&self, details: &ObjectDetails, vaddr: ElfVaddr) -> Option<Arc<Symbol>> {
        let key = (details.index, vaddr);
        let object = {
            let state = &mut *self.state.lock();
            if let Some(known) = state.names.get(&key) {
                return known.clone();
            }
            state.object(details)
        };
        let found = object.find(self.beside(details, &object), vaddr);
        let symbol = found.map(|(start, linkage_name)| {
            Arc::new(Symbol { name: source_name(&linkage_name), linkage_name, start })
        });
        let state = &mut *self.state.lock();
        if state.names.len() >= MAX_NAMES {
            state.names.clear();
        }
        state.names.insert(key, symbol.clone());
        symbol
    }

    /// Whether [`Symbolizer::symbol`] finds the function at `vaddr` without reading tables beside the object.
    /// If it would read some, requests that [`Symbolizer::prepare_next`] reads them.
    pub fn prepare(&self, details: &Arc<ObjectDetails>, vaddr: ElfVaddr) -> Preparation {
        let state = &mut *self.state.lock();
        if state.names.contains_key(&(details.index, vaddr)) {
            return Preparation::Done;
        }
        let object = state.object(details);
        if object.beside.get().is_some() {
            Preparation::Done
        } else if object.is_requested.swap(true, Ordering::Relaxed) {
            Preparation::Due
        } else {
            state.requested.push((details.clone(), object));
            Preparation::Requested
        }
    }

    /// Reads the tables beside one object for which that was requested; false if there is no such object.
    pub fn prepare_next(&self) -> bool {
        let next = self.state.lock().requested.pop();
        if let Some((details, object)) = &next {
            self.beside(details, object);
        }
        next.is_some()
    }

    fn beside<'a>(&self, details: &ObjectDetails, object: &'a Object) -> Option<&'a Beside> {
        object.beside.get_or_init(|| Beside::of(details, self.debug_files.as_deref())).as_ref()
    }

    /// Drops the tables of objects that were not used since the last call. To be called once an interval.
    pub fn drop_unused(&self) {
        let state = &mut *self.state.lock();
        state.objects.retain(|_, object| object.was_used.swap(false, Ordering::Relaxed));
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
        let bytes = |object: &Object| {
            let beside = object.beside.get().and_then(Option::as_ref);
            object.own.as_ref().map_or(0, Symbols::heap_bytes) + beside.map_or(0, Beside::heap_bytes)
        };
        (state.objects.len(), state.objects.values().map(|object| bytes(object)).sum())
    }
}

impl State {
    /// The object's tables, of which its own are read first if they are not cached.
    fn object(&mut self, details: &ObjectDetails) -> Arc<Object> {
        let object = self.objects.entry(details.index).or_insert_with(|| Arc::new(Object::new(details)));
        object.was_used.store(true, Ordering::Relaxed);
        object.clone()
    }
}

/// The name of a function in the source code. glibc's symbol tables have some functions by the names that the
/// library itself calls (`__GI_`, include/libc-symbols.h), such as `__GI___clone3`.
fn source_name(linkage_name: &str) -> String {
    demangle(linkage_name.strip_prefix("__GI_").unwrap_or(linkage_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_s_own_names_are_those_of_the_source() {
        for (linkage_name, name) in
            [("__GI___clone3", "__clone3"), ("__clone3", "__clone3"), ("_ZNK5Klass4nameEv", "Klass::name")]
        {
            assert_eq!(source_name(linkage_name), name);
        }
    }
}
