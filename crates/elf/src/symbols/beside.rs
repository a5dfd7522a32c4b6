//! Symbols that an object's own symbol table lacks: those of a debug file that is installed beside the
//! object, and MiniDebugInfo.
//!
//! A debug file is used only if it belongs to the object: it has the object's build-id or, where one of the
//! two has none, the checksum of the object's debug link. A debug file is read by positioned reads, and of
//! its content only the symbol table is kept.

use std::path::{Path, PathBuf};

use otlpprof_core::address::ElfVaddr;
use otlpprof_core::build_id::BuildId;

use super::tables::Symbols;
use crate::build_id;
use crate::debug_file_places::{build_id_places, debug_link_places};
use crate::debug_link::{self, DebugLink};
use crate::file::ElfFile;
use crate::mini_debug_info;
use crate::objects::ObjectDetails;
use crate::source::{FileSource, Source};
use crate::unwind::sections::executable_range;

/// The largest debug file of which the checksum is computed, in bytes.
const MAX_CHECKED_LEN: u64 = 2 << 30;

/// The symbols beside an object's own.
#[derive(Debug)]
pub enum Beside {
    /// All functions, from a debug file.
    DebugFile(Symbols),
    /// The functions that `.dynsym` lacks.
    Mini(Symbols),
}

impl Beside {
    /// Searches and reads the symbols; `None` if there are none. `folder` is the one in which debug files are
    /// installed, `None` if no debug file is used. Reads files for up to a second.
    pub fn of(details: &ObjectDetails, folder: Option<&Path>) -> Option<Self> {
        let text = executable_range(details.image())?;
        let file = details.open_file().ok().and_then(|file| ElfFile::parse(file).ok());
        let debug_file = folder.and_then(|folder| {
            let candidates = Candidates::of(details, file.as_ref(), folder);
            candidates.first(|file| Symbols::of_debug_file(file, &text).ok())
        });
        if let Some(symbols) = debug_file {
            return Some(Self::DebugFile(symbols));
        }
        match mini_debug_info::of_file(&file?) {
            Ok(image) => Symbols::of_mini_debug_info(&image?, &text).ok().map(Self::Mini),
            Err(error) => {
                log::debug!("{}: {error}", details.path.display());
                None
            }
        }
    }

    /// The first address and the linkage name of the function that contains `vaddr`. `own` are the object's
    /// own symbols, which a debug file's replace, and to which MiniDebugInfo adds.
    pub fn find(&self, own: Option<&Symbols>, vaddr: ElfVaddr) -> Option<(ElfVaddr, String)> {
        let of_own = || own.and_then(|own| own.find(vaddr));
        match self {
            Self::DebugFile(symbols) => symbols.find(vaddr),
            // A function without a size may reach over functions of the other table: so the nearer one
            // counts.
            Self::Mini(symbols) => match (of_own(), symbols.find(vaddr)) {
                (Some(own), Some(mini)) if mini.0 > own.0 => Some(mini),
                (own, mini) => own.or(mini),
            },
        }
    }

    /// The size on the heap, in bytes.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::DebugFile(symbols) | Self::Mini(symbols) => symbols.heap_bytes(),
        }
    }
}

/// The places at which an object's debug file may be installed.
struct Candidates<'a> {
    /// The object's build-id.
    build_id: Option<&'a BuildId>,
    /// The checksum of the object's debug link.
    crc: Option<u32>,
    paths: Vec<PathBuf>,
}

impl<'a> Candidates<'a> {
    fn of(details: &'a ObjectDetails, file: Option<&ElfFile<FileSource>>, folder: &Path) -> Self {
        let in_tree = details.build_id.and_then(|id| build_id_places(folder, id));
        let mut paths: Vec<_> = in_tree.map(|[debug_file, _]| debug_file).into_iter().collect();
        let link = file.and_then(|file| DebugLink::of_file(file).ok()?);
        if let Some(link) = link.as_ref().filter(|_| details.path.is_absolute()) {
            paths.extend(debug_link_places(&details.path, None, &link.name, &[folder]));
        }
        Self { build_id: details.build_id, crc: link.map(|link| link.crc), paths }
    }

    /// The first result of `read` on a file that is the object's debug file.
    fn first<T>(self, read: impl Fn(FileSource) -> Option<T>) -> Option<T> {
        self.paths.iter().find_map(|path| {
            // Opening a device may have effects.
            let is_regular = std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0);
            let file = is_regular.then(|| FileSource::open(path).ok())??;
            if !self.accepts(&file) {
                log::debug!("{} is the debug file of another object", path.display());
                return None;
            }
            read(file)
        })
    }

    fn accepts(&self, file: &FileSource) -> bool {
        match (self.build_id, build_id::of_source(file)) {
            (Some(expected), Ok(found)) => found == *expected,
            _ => self.crc.is_some_and(|crc| {
                file.len() <= MAX_CHECKED_LEN && debug_link::crc_of(file).is_ok_and(|found| found == crc)
            }),
        }
    }
}
