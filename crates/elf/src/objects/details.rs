//! The ordinary zone's description of one loading of one object. Also available after the unloading.

use std::ffi::OsStr;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;

use otlpprof_core::address::{ElfVaddr, FileOffset, LoadBias};
use otlpprof_core::build_id::BuildId;
use otlpprof_core::object::ObjectIndex;

use super::backing_file::{self, BackingFileError, FileIdentity};
use crate::htlhash::HtlHash;
use crate::image::LoadedImage;
use crate::source::FileSource;

/// The kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// The program that was executed.
    Program,
    /// A shared library, or the dynamic linker.
    Library,
    /// The object that the kernel maps into each process. It has no file.
    Vdso,
}

/// An executable segment, in the form of an OTLP Mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSegment {
    /// `memory_start` and `memory_limit`.
    pub vaddrs: Range<ElfVaddr>,
    /// The segment's offset in the file.
    pub file_offset: FileOffset,
}

/// The description of one loading of one object.
#[derive(Debug)]
pub struct ObjectDetails {
    /// Identifies this loading for the life of the process.
    pub index: ObjectIndex,
    /// The kind of the object.
    pub kind: ObjectKind,
    /// The path of the loaded file, absolute if that is known; `[vdso]` for the vDSO.
    pub path: PathBuf,
    /// The object's GNU build-id, from its notes in memory, otherwise from its file.
    pub build_id: Option<&'static BuildId>,
    /// The object's executable segments, in the file's order.
    pub code: Box<[CodeSegment]>,
    pub(super) image: LoadedImage,
    /// The identity of the object's file. Set only if the build-id is not in memory and the identity is
    /// certain.
    pub(super) file_identity: Option<FileIdentity>,
    pub(super) htlhash: OnceLock<Option<HtlHash>>,
}

impl ObjectDetails {
    /// The last component of the path.
    pub fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or(self.path.as_os_str())
    }

    /// Run-time minus ELF virtual address.
    pub fn load_bias(&self) -> LoadBias {
        self.image.load_bias()
    }

    /// The object's image. Reads from it yield the object's bytes only while the object is loaded.
    pub fn image(&self) -> &LoadedImage {
        &self.image
    }

    /// The executable segment that contains `vaddr`.
    pub fn code_segment_at(&self, vaddr: ElfVaddr) -> Option<&CodeSegment> {
        self.code.iter().find(|segment| segment.vaddrs.contains(&vaddr))
    }

    /// Opens the object's file, if it is still the file that was loaded.
    ///
    /// # Errors
    /// If the object has no file, or the file has been replaced.
    pub fn open_file(&self) -> Result<FileSource, BackingFileError> {
        match self.kind {
            ObjectKind::Vdso => Err(BackingFileError::NoFile),
            ObjectKind::Program | ObjectKind::Library => {
                backing_file::open(&self.path, self.build_id, self.file_identity, &self.image)
            }
        }
    }

    /// The hash of the object's file; `None` if the file is missing or replaced. The first call reads the
    /// file; later calls return the first result.
    pub fn htlhash(&self) -> Option<HtlHash> {
        *self.htlhash.get_or_init(|| HtlHash::of(&self.open_file().ok()?).ok())
    }

    /// The result of `read` on the image, while the image belongs to this object; `None` if the object was
    /// unloaded. See [`LoadedImage::read_while_loaded`].
    pub fn read_while_loaded<T>(&self, read: impl Fn(&LoadedImage) -> T) -> Option<T> {
        match self.kind {
            // The kernel never unmaps the vDSO, and not every dynamic linker lists it.
            ObjectKind::Vdso => Some(read(&self.image)),
            ObjectKind::Program | ObjectKind::Library => self.image.read_while_loaded(read),
        }
    }
}
