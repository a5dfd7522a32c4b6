//! What the ordinary zone knows of one loading of one object, also after it was unloaded.

use std::ffi::OsStr;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::backing_file::{self, BackingFileError, FileIdentity};
use crate::core::address::{ElfVaddr, FileOffset, LoadBias};
use crate::core::build_id::BuildId;
use crate::core::object::ObjectIndex;
use crate::elf::htlhash::HtlHash;
use crate::elf::image::LoadedImage;
use crate::elf::source::FileSource;

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// The program that was executed.
    Program,
    /// A shared library, or the dynamic linker.
    Library,
    /// What the kernel maps into each process. It has no file.
    Vdso,
}

/// An executable segment, as an OTLP Mapping wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSegment {
    /// `memory_start` and `memory_limit`.
    pub vaddrs: Range<ElfVaddr>,
    /// Where it starts in the file.
    pub file_offset: FileOffset,
}

/// One loading of one object.
#[derive(Debug)]
pub struct ObjectDetails {
    /// Its name for the life of the process.
    pub index: ObjectIndex,
    /// What it is.
    pub kind: ObjectKind,
    /// The path it was loaded from, absolute where that is known; `[vdso]` for the vDSO.
    pub path: PathBuf,
    /// Its GNU build-id, from its notes in memory or, failing that, from its file.
    pub build_id: Option<&'static BuildId>,
    /// Its executable segments, in the file's order.
    pub code: Box<[CodeSegment]>,
    pub(super) image: LoadedImage,
    /// Which file it is; where its build-id is not in memory, and the file is certain.
    pub(super) file_identity: Option<FileIdentity>,
    pub(super) htlhash: OnceLock<Option<HtlHash>>,
}

impl ObjectDetails {
    /// The path's last part.
    pub fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or(self.path.as_os_str())
    }

    /// Run-time minus ELF virtual address.
    pub fn load_bias(&self) -> LoadBias {
        self.image.load_bias()
    }

    /// Its image. Only while the object is loaded does reading it give the object's bytes.
    pub fn image(&self) -> &LoadedImage {
        &self.image
    }

    /// The executable segment that `vaddr` is in.
    pub fn code_segment_at(&self, vaddr: ElfVaddr) -> Option<&CodeSegment> {
        self.code.iter().find(|segment| segment.vaddrs.contains(&vaddr))
    }

    /// Opens its file, if that is (still) the one that was loaded.
    ///
    /// # Errors
    /// If there is none, or another one is in its place.
    pub fn open_file(&self) -> Result<FileSource, BackingFileError> {
        backing_file::open(self)
    }

    /// The hash of its file; `None` if that is gone or replaced. The first call reads the file, and all
    /// give what that found.
    pub fn htlhash(&self) -> Option<HtlHash> {
        *self.htlhash.get_or_init(|| HtlHash::of(&self.open_file().ok()?).ok())
    }

    /// The value that `read` gives of the image while that is this object's; `None` if it was unloaded. See
    /// [`LoadedImage::read_while_loaded`].
    pub fn read_while_loaded<T>(&self, read: impl Fn(&LoadedImage) -> T) -> Option<T> {
        match self.kind {
            // The kernel never unmaps it, and not every dynamic linker lists it.
            ObjectKind::Vdso => Some(read(&self.image)),
            ObjectKind::Program | ObjectKind::Library => self.image.read_while_loaded(read),
        }
    }
}
