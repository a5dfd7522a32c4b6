//! The check that a file must pass before it enters a cache.

use otlpprof_elf::debug_link::DebugLink;
use otlpprof_elf::source::FileSource;

use super::examined::Examined;
use super::files::{FileKind, Quality};
use super::identity::FileId;

/// A file that a server is asked for.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) id: FileId,
    pub(super) kind: FileKind,
    /// The debug link of an object without a build-id.
    pub(super) link: Option<DebugLink>,
}

impl Wanted {
    /// Checks a file: an ELF file, complete, of the right identity, and of use.
    ///
    /// # Errors
    /// The reason why the file is refused.
    pub(super) fn accept(&self, source: &FileSource) -> Result<(), String> {
        let examined = Examined::of(source).map_err(|error| error.to_string())?;
        let is_linked = || {
            let link = self.link.as_ref().filter(|_| self.kind == FileKind::DebugInfo);
            let link = link.filter(|_| examined.build_id.is_none());
            link.is_some_and(|link| link.is_of(source))
        };
        if !examined.is(&self.id) && !is_linked() {
            return Err(format!("{}, not {}", examined.described(), self.id));
        }
        match self.kind {
            FileKind::Executable if !examined.has_code => Err("a file without code".to_owned()),
            FileKind::DebugInfo if examined.quality == Quality::Nothing => {
                Err("a file without symbols".to_owned())
            }
            _ => Ok(()),
        }
    }
}
