//! The objects that contain remote frames, as recordings describe them.

use std::collections::HashMap;

use otlpprof_core::address::{ElfVaddr, FileOffset};
use otlpprof_core::build_id::BuildId;
use otlpprof_jfr::values::{Struct, Value};
use otlpprof_model::{Mapping, MappingId, Tables};

/// Objects by build-id.
#[derive(Debug, Default)]
pub(super) struct Libraries {
    known: HashMap<BuildId, Library>,
    mappings: HashMap<BuildId, MappingId>,
}

#[derive(Debug)]
struct Library {
    path: String,
    start: ElfVaddr,
    limit: ElfVaddr,
}

impl Libraries {
    /// The event that describes an object. HotSpot's event has no build-id, and without one no frame refers
    /// to the object.
    pub(super) const EVENT: &'static str = "jdk.NativeLibrary";

    /// Takes such an event. Datadog's profiler adds the build-id and the load bias, which converts run-time
    /// addresses to the object's own.
    pub(super) fn note(&mut self, library: &Struct<'_>) {
        let chunk = library.chunk();
        let text = |name| library.get(name).and_then(|value| chunk.text(value));
        let address = |name| library.get(name).as_ref().and_then(Value::as_i64).map(|address| address as u64);
        let Some(build_id) = text("buildId").and_then(|hex| BuildId::from_hex(&hex)) else { return };
        let bias = address("loadBias").unwrap_or(0);
        let elf = |name| ElfVaddr(address(name).unwrap_or(0).saturating_sub(bias));
        let path = text("name").unwrap_or_default().into_owned();
        let library = Library { path, start: elf("baseAddress"), limit: elf("topAddress") };
        self.known.entry(build_id).or_insert(library);
    }

    /// Forgets the mappings, which are valid for one set of tables only.
    pub(super) fn forget_mappings(&mut self) {
        self.mappings.clear();
    }

    /// The mapping for addresses in an object. It has only the build-id if no event has described the object.
    pub(super) fn mapping(&mut self, build_id: BuildId, tables: &mut Tables) -> MappingId {
        if let Some(&made) = self.mappings.get(&build_id) {
            return made;
        }
        let mut mapping = Mapping { build_id: Some(build_id), ..Mapping::default() };
        if let Some(library) = self.known.get(&build_id) {
            mapping.filename = tables.strings.intern(&library.path);
            (mapping.memory_start, mapping.memory_limit) = (library.start, library.limit);
            mapping.file_offset = FileOffset(0);
        }
        let made = tables.mappings.intern(mapping);
        self.mappings.insert(build_id, made);
        made
    }
}
