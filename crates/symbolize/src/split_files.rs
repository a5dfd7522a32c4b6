//! Split units (`.dwo`) of debug information, as the locator finds them.

use otlpprof_debug_files::split_units::SplitUnits;
use otlpprof_dwarf::SplitFiles;
use otlpprof_elf::source::Source;

/// The split units of one object.
#[derive(Debug)]
pub(super) struct ObjectSplitFiles(pub(super) SplitUnits);

impl SplitFiles for ObjectSplitFiles {
    fn open(&self, name: &str, folder: Option<&str>, dwo_id: u64) -> Option<Box<dyn Source + Send + Sync>> {
        Some(Box::new(self.0.find(name, folder, dwo_id)?))
    }
}
