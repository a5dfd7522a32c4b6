//! The store: executables and debug files by their identity, in a folder that any web server can serve to
//! debuginfod's clients.
//!
//! The layout is debuginfod's (its manual, "WEBAPI"): `buildid/<id>/debuginfo` and
//! `buildid/<id>/executable`. The package of an object's split units is `buildid/<id>/dwp`. The id of an
//! object without a build-id is the hash of its content. A file is complete when it has its name.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use otlpprof_dwarf::{package_has, split_ids};
use otlpprof_elf::debug_link::{DebugLink, crc_of};
use otlpprof_elf::source::FileSource;
use otlpprof_incomplete_file::{IncompleteFile, PREFIX};

use super::examined::{ExamineError, Examined};
use super::files::{FileKind, Quality};
use super::identity::{FileId, IdError};

/// The folder of files that are not complete.
const INCOMING: &str = ".incoming";

/// The age at which an incomplete file is given up by its writer.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// A store of executables and debug files.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

/// The reason why a file is not stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file is no complete ELF file.
    #[error(transparent)]
    Examine(#[from] ExamineError),
    /// The file has nothing that is needed.
    #[error("the file has neither code nor symbols")]
    Useless,
    /// The file has no build-id, and is no executable or library that its content could identify.
    #[error("no build-id, and no object in the store has a debug link with its name and CRC-32")]
    NoIdentity,
    /// The file is a package of split units, of no object in the store.
    #[error("no object in the store has these split units")]
    NoObject,
    /// The file has split units, which belong into a package.
    #[error("only split units: put them into a package by llvm-dwp -e PROGRAM -o PROGRAM.dwp")]
    Split,
    /// The identity is no key of files.
    #[error(transparent)]
    Id(#[from] IdError),
    /// The store cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
}

/// The result for a file of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The store has the file now, and had none.
    Added,
    /// The store had a worse or a damaged one.
    Replaced,
    /// The store has one that is as good or better.
    Kept,
}

/// A file and its place in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The identity.
    pub id: FileId,
    /// The kind of file.
    pub kind: FileKind,
    /// The quality of the file that was given.
    pub quality: Quality,
    /// The result.
    pub outcome: Outcome,
}

/// The places that a file belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Belonging {
    /// The identity of its object.
    pub id: FileId,
    /// The kinds of file that it is.
    pub kinds: Vec<FileKind>,
    /// Its quality.
    pub quality: Quality,
}

/// A file of the store.
#[derive(Debug)]
pub struct StoredFile {
    /// The identity.
    pub id: FileId,
    /// The kind of file.
    pub kind: FileKind,
    /// The path.
    pub path: PathBuf,
    /// The length, in bytes.
    pub len: u64,
    /// The time of the last use: of the last change or the last reading, whichever is later.
    pub used: SystemTime,
    /// The quality, or the reason why the file is of no use.
    pub quality: Result<Quality, String>,
}

/// A file that is being written, to be placed in the store.
#[derive(Debug)]
pub struct Incoming(IncompleteFile);

impl io::Write for Incoming {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.file.flush()
    }
}

impl Incoming {
    fn source(&self) -> io::Result<FileSource> {
        FileSource::new(self.0.file.try_clone()?)
    }
}

impl Store {
    /// The store in a folder, which need not exist.
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The place of a file.
    pub fn path_of(&self, id: &FileId, kind: FileKind) -> PathBuf {
        self.folder_of(id).join(kind.name())
    }

    /// The folder of an object's files.
    fn folder_of(&self, id: &FileId) -> PathBuf {
        self.root.join("buildid").join(id.to_string())
    }

    /// Begins a file.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn begin(&self) -> Result<Incoming, StoreError> {
        let folder = self.root.join(INCOMING);
        let created = fs::create_dir_all(&folder).and_then(|()| IncompleteFile::inside(&folder));
        created.map(Incoming).map_err(|error| StoreError::Io { path: folder, error })
    }

    /// Examines a file, and decides the places that it belongs to. `name` is its file name, which debug links
    /// may name.
    ///
    /// # Errors
    /// If the file is no complete ELF file, is of no use, or its object is not known.
    pub fn belonging(&self, source: &FileSource, name: &OsStr) -> Result<Belonging, StoreError> {
        let examined = Examined::of(source)?;
        let quality = examined.quality;
        if examined.is_split {
            return Err(StoreError::Split);
        }
        if examined.is_package {
            let id = self.object_of_package(source)?.ok_or(StoreError::NoObject)?;
            return Ok(Belonging { id, kinds: vec![FileKind::Package], quality });
        }
        let kinds = match (examined.has_code, quality) {
            (true, Quality::DebugInfo) => vec![FileKind::Executable, FileKind::DebugInfo],
            (true, _) => vec![FileKind::Executable],
            (false, Quality::DebugInfo | Quality::SymbolTable) => vec![FileKind::DebugInfo],
            (false, _) => return Err(StoreError::Useless),
        };
        let id = match &examined.build_id {
            Some(build_id) => FileId::of(build_id)?,
            None if examined.has_code && examined.is_loadable => FileId::of_hash(&examined.htlhash),
            None if examined.has_code => return Err(StoreError::NoIdentity),
            None => self.owner_of(name, source)?.ok_or(StoreError::NoIdentity)?,
        };
        Ok(Belonging { id, kinds, quality })
    }

    /// Whether the store has a file for each of these places that is as good.
    pub fn has_as_good(&self, Belonging { id, kinds, quality }: &Belonging) -> bool {
        kinds.iter().all(|&kind| self.quality_of(id, kind).is_some_and(|there| there >= *quality))
    }

    /// Places a file, unless the store has a better one. `name` is its file name, which debug links may name.
    ///
    /// # Errors
    /// If the file is of no use or its object is not known, and if the store cannot be written.
    pub fn place(&self, mut file: Incoming, name: &OsStr) -> Result<Vec<Placed>, (StoreError, Incoming)> {
        let source = file.flush().and_then(|()| file.source()).map_err(|error| self.failed(error));
        let Belonging { id, kinds, quality } = match source.and_then(|source| self.belonging(&source, name)) {
            Ok(belonging) => belonging,
            Err(error) => return Err((error, file)),
        };
        let mut placed = Vec::new();
        let result = self.locked(|| {
            let mut open_places = Vec::new();
            for kind in kinds {
                let outcome = match self.quality_of(&id, kind) {
                    Some(there) if there >= quality => Outcome::Kept,
                    _ if self.path_of(&id, kind).exists() => Outcome::Replaced,
                    _ => Outcome::Added,
                };
                if outcome != Outcome::Kept {
                    open_places.push(self.path_of(&id, kind));
                }
                placed.push(Placed { id, kind, quality, outcome });
            }
            fs::create_dir_all(self.folder_of(&id))?;
            // Both places of a file that is both have one copy.
            if let [first, second] = &open_places[..] {
                let mut other = file.0.second()?;
                file.0.persist(first)?;
                other.persist(second)
            } else if let [place] = &open_places[..] {
                file.0.persist(place)
            } else {
                Ok(())
            }
        });
        match result {
            Ok(()) => Ok(placed),
            Err(error) => Err((self.failed(error), file)),
        }
    }

    /// All files of the store, by identity.
    ///
    /// # Errors
    /// If the store cannot be read. A store that does not exist is empty.
    pub fn files(&self) -> Result<Vec<StoredFile>, StoreError> {
        let mut files = Vec::new();
        for id in self.ids()? {
            for kind in FileKind::ALL {
                let path = self.path_of(&id, kind);
                let Ok(metadata) = fs::metadata(&path) else { continue };
                let times = [metadata.modified(), metadata.accessed()].into_iter().flatten();
                let used = times.max().unwrap_or(SystemTime::UNIX_EPOCH);
                let quality = self.checked(&id, kind);
                files.push(StoredFile { id, kind, path, len: metadata.len(), used, quality });
            }
        }
        files.sort_by_key(|file| (file.id, file.kind));
        Ok(files)
    }

    /// Notes the use of a file of the store. Not every file system notes when a file is read.
    pub(super) fn note_use(&self, path: &Path) {
        if path.starts_with(&self.root) {
            let now = FileTimes::new().set_accessed(SystemTime::now());
            // Fails for a store that belongs to another user, whose use is not noted.
            let _ = File::open(path).and_then(|file| file.set_times(now));
        }
    }

    /// Removes a file.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn remove(&self, file: &StoredFile) -> Result<(), StoreError> {
        let path = self.path_of(&file.id, file.kind);
        fs::remove_file(&path).map_err(|error| StoreError::Io { path: path.clone(), error })?;
        if let Some(folder) = path.parent() {
            // Fails where the other file is there.
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }

    /// Removes incomplete files that their writers gave up, and returns their number.
    ///
    /// # Errors
    /// If one cannot be removed.
    pub fn remove_abandoned(&self) -> Result<usize, StoreError> {
        let mut removed = 0;
        let Ok(entries) = fs::read_dir(self.root.join(INCOMING)) else { return Ok(0) };
        let is_incomplete = |name: &OsStr| name.as_encoded_bytes().starts_with(PREFIX.as_bytes());
        for entry in entries.flatten().filter(|entry| is_incomplete(&entry.file_name())) {
            let age = entry.metadata().and_then(|metadata| metadata.modified()).map(|time| time.elapsed());
            if matches!(age, Ok(Ok(age)) if age >= ABANDONED) {
                fs::remove_file(entry.path())
                    .map_err(|error| StoreError::Io { path: entry.path(), error })?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// The identities that have a folder.
    fn ids(&self) -> Result<Vec<FileId>, StoreError> {
        let folder = self.root.join("buildid");
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::Io { path: folder, error }),
        };
        let names = entries.flatten().map(|entry| entry.file_name());
        Ok(names.filter_map(|name| FileId::parse(name.to_str()?).ok()).collect())
    }

    /// The object without a build-id whose debug link has this name and the checksum of these bytes.
    fn owner_of(&self, name: &OsStr, source: &FileSource) -> Result<Option<FileId>, StoreError> {
        let mut links = Vec::new();
        for id in self.ids()? {
            let link = self.link_of(&id);
            links.extend(link.filter(|link| link.name == name).map(|link| (id, link.crc)));
        }
        if links.is_empty() {
            return Ok(None);
        }
        let crc = crc_of(source).map_err(|error| self.failed(error))?;
        Ok(links.into_iter().find(|(_, wanted)| *wanted == crc).map(|(id, _)| id))
    }

    /// The object whose split units a package has.
    fn object_of_package(&self, package: &FileSource) -> Result<Option<FileId>, StoreError> {
        Ok(self.ids()?.into_iter().find(|id| self.is_package_of(package, id)))
    }

    /// Whether a package has the split units of an object in the store.
    fn is_package_of(&self, package: &FileSource, id: &FileId) -> bool {
        let ids = |kind| split_ids(&open_unnoticed(&self.path_of(id, kind)).ok()?).ok();
        let of_object = [FileKind::DebugInfo, FileKind::Executable].into_iter().filter_map(ids);
        let of_object = of_object.into_iter().find(|ids| !ids.is_empty());
        of_object.is_some_and(|ids| package_has(package, &ids).unwrap_or(false))
    }

    /// The debug link of an object without a build-id.
    fn link_of(&self, id: &FileId) -> Option<DebugLink> {
        let source = open_unnoticed(&self.path_of(id, FileKind::Executable)).ok()?;
        let examined = Examined::of(&source).ok()?;
        examined.debug_link.filter(|_| examined.build_id.is_none() && id.is_hash(&examined.htlhash))
    }

    /// The quality of a file that the store has and that belongs to the object.
    fn quality_of(&self, id: &FileId, kind: FileKind) -> Option<Quality> {
        self.checked(id, kind).ok()
    }

    fn checked(&self, id: &FileId, kind: FileKind) -> Result<Quality, String> {
        let path = self.path_of(id, kind);
        let source = open_unnoticed(&path).map_err(|error| error.to_string())?;
        let examined = Examined::of(&source).map_err(|error| error.to_string())?;
        let belongs = match kind {
            FileKind::Executable => examined.is(id),
            FileKind::DebugInfo => {
                examined.is(id) || self.link_of(id).is_some_and(|link| link.is_of(&source))
            }
            FileKind::Package => self.is_package_of(&source, id),
        };
        if belongs {
            return Ok(examined.quality);
        }
        Err(format!("another object's file: {}", examined.described()))
    }

    /// Runs `action` while no other process places a file.
    fn locked<T>(&self, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let lock = File::create(self.root.join(INCOMING).join("lock"))?;
        lock.lock()?;
        action()
    }

    fn failed(&self, error: io::Error) -> StoreError {
        StoreError::Io { path: self.root.clone(), error }
    }
}

/// Opens a file so that a check of the store does not count as a use of the file.
fn open_unnoticed(path: &Path) -> io::Result<FileSource> {
    let mut options = OpenOptions::new();
    options.read(true);
    let unnoticed = options.clone().custom_flags(libc::O_NOATIME | libc::O_NONBLOCK).open(path);
    // Only the owner of a file may read it so.
    FileSource::new(unnoticed.or_else(|_| options.custom_flags(libc::O_NONBLOCK).open(path))?)
}
