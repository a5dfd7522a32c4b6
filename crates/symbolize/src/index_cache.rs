//! The folder of indexes: one for each object and its files.
//!
//! An index is a file `indexes/<identity of the object>-<fingerprint of its files>.symbols`. It is written
//! beside its place and renamed, so that any number of processes may make the same one. An index of another
//! version, of other files, or with damage is made again. Indexes that nobody has used for 30 days are
//! removed when another one is made. Where the folder cannot be written, a temporary one is used.
//!
//! To make an index takes longer than to read the debug information of some addresses. Where only one message
//! is resolved ([`IndexCache::make_at_second_use`]), an object's first use is such a reading. It leaves an
//! empty file `<identity of the object>-<fingerprint of its files>.used`. The next use makes the index.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use otlpprof_debug_files::ObjectIdentity;
use otlpprof_dwarf::index::{Identity, Index, write};
use otlpprof_dwarf::{Compiled, DwarfError};
use otlpprof_elf::source::FileSource;
use otlpprof_incomplete_file::PREFIX;

use super::open_files::OpenFiles;

/// The time after which an unused index is removed.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 3600);
/// The age at which the time of an index's last use is renewed.
const RENEWED: Duration = Duration::from_secs(24 * 3600);
/// The extensions of an index, and of the note of an object's first use.
const INDEX: &str = "symbols";
const NOTE: &str = "used";

/// The reason why there is no index.
#[derive(Debug, thiserror::Error)]
pub enum IndexFailure {
    /// The object's file is damaged.
    #[error("{}: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: DwarfError,
    },
    /// The index cannot be written.
    #[error("its index cannot be written: {0}")]
    Unwritable(io::Error),
    /// An index that was just written cannot be read.
    #[error("its index cannot be read: {0}")]
    Unreadable(String),
}

/// A reader of an index, whose file other readers share.
pub(super) type IndexReader = Index<Arc<FileSource>>;

/// Something that answers for addresses, and the losses of debug information when it was made, in words.
#[derive(Debug)]
pub(super) struct WithLosses<T> {
    pub(super) answers: T,
    pub(super) losses: Option<String>,
}

/// The identity and the file name of the index of an object and its files.
#[derive(Debug)]
pub(super) struct IndexKey {
    identity: Identity,
    /// The file name, without its extension.
    name: String,
}

impl IndexKey {
    pub(super) fn of(object: &ObjectIdentity, files: &OpenFiles) -> Self {
        let identity = files.identity(object);
        let object: String = identity.object.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("{object}-{:016x}", files.fingerprint(&identity));
        Self { identity, name }
    }

    fn file_name(&self, extension: &str) -> String {
        format!("{}.{extension}", self.name)
    }
}

/// A folder of indexes.
#[derive(Debug, Default)]
pub struct IndexCache {
    folder: Option<PathBuf>,
    temporary: Option<TemporaryFolder>,
    makes_at_second_use: bool,
}

impl IndexCache {
    /// The indexes in a folder, which is created when it is needed.
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: Some(folder.join("indexes")), ..Self::default() }
    }

    /// Leaves each index to the second use of its object, in this process or another one.
    pub fn make_at_second_use(&mut self) {
        self.makes_at_second_use = true;
    }

    /// The index with a key, if there is one.
    pub(super) fn find(&self, key: &IndexKey) -> Option<WithLosses<IndexReader>> {
        let folders = [self.folder.as_deref(), self.temporary.as_ref().map(TemporaryFolder::path)];
        let mut folders = folders.into_iter().flatten();
        let index = folders.find_map(|folder| usable(&folder.join(key.file_name(INDEX)), &key.identity))?;
        let lost = index.problems();
        let losses = (lost > 0).then(|| format!("{lost} units of its debug information are damaged"));
        Some(WithLosses { answers: index, losses })
    }

    /// Whether an index that does not exist is to be made at this use of its object.
    pub(super) fn is_due(&self, key: &IndexKey) -> bool {
        // An index that cannot be read tells of a use as well as the note.
        let is_used = |folder: &Path| [NOTE, INDEX].iter().any(|of| folder.join(key.file_name(of)).exists());
        !self.makes_at_second_use || self.folder.as_deref().is_some_and(is_used)
    }

    /// Reads the debug information only of some addresses, and notes the first use of the object.
    ///
    /// # Errors
    /// If the object's files are damaged.
    pub(super) fn read_directly(
        &self,
        key: &IndexKey,
        files: &OpenFiles,
        vaddrs: &[u64],
    ) -> Result<WithLosses<Compiled>, IndexFailure> {
        let compiled = compile(files, Some(vaddrs))?;
        // The index would not be kept if files are missing: then each use is a first one.
        if let Some(folder) = self.folder.as_deref().filter(|_| !lacks_files(&compiled)) {
            // Without the note, the next use is a first one too.
            let note = create(folder).and_then(|()| File::create(folder.join(key.file_name(NOTE))));
            if note.is_ok() {
                remove_unused(folder, SystemTime::now());
            }
        }
        let losses = losses(&compiled);
        Ok(WithLosses { answers: compiled, losses })
    }

    /// Makes the index of an object, whether there is one or not.
    ///
    /// # Errors
    /// If the object's files are damaged, or no index can be written.
    pub(super) fn make(
        &mut self,
        key: &IndexKey,
        files: &OpenFiles,
    ) -> Result<WithLosses<IndexReader>, IndexFailure> {
        let compiled = compile(files, None)?;
        let path = self.write(&compiled, key).map_err(IndexFailure::Unwritable)?;
        let losses = losses(&compiled);
        drop(compiled);
        let file = FileSource::open(&path).map_err(|error| IndexFailure::Unreadable(error.to_string()))?;
        let index =
            Index::open(Arc::new(file)).map_err(|error| IndexFailure::Unreadable(error.to_string()))?;
        Ok(WithLosses { answers: index, losses })
    }

    /// Writes an index. One that lacks what may be found later is not kept.
    fn write(&mut self, compiled: &Compiled, key: &IndexKey) -> io::Result<PathBuf> {
        if let Some(folder) = self.folder.as_deref().filter(|_| !lacks_files(compiled)) {
            let path = folder.join(key.file_name(INDEX));
            if create(folder).and_then(|()| write(compiled, &key.identity, &path)).is_ok() {
                // The note may never have been written.
                let _ = fs::remove_file(folder.join(key.file_name(NOTE)));
                remove_unused(folder, SystemTime::now());
                return Ok(path);
            }
        }
        let folder = match &mut self.temporary {
            Some(folder) => folder,
            none => none.insert(TemporaryFolder::create()?),
        };
        let path = folder.path().join(key.file_name(INDEX));
        write(compiled, &key.identity, &path)?;
        Ok(path)
    }
}

fn compile(files: &OpenFiles, vaddrs: Option<&[u64]>) -> Result<Compiled, IndexFailure> {
    files.compile(vaddrs).map_err(|why| IndexFailure::Damaged { path: files.path().to_owned(), why })
}

/// The index at a path, if it is whole as far as it is read here, and of these files.
fn usable(path: &Path, identity: &Identity) -> Option<IndexReader> {
    let source = Arc::new(FileSource::open(path).ok()?);
    let used = source.file().metadata().and_then(|file| file.modified());
    let index = Index::open(source).ok().filter(|index| index.identity() == identity)?;
    let now = SystemTime::now();
    if used.is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age > RENEWED)) {
        // An index of another user is used as well, and its time stays as it is.
        let _ = File::options().append(true).open(path).and_then(|file| file.set_modified(now));
    }
    Some(index)
}

fn losses(compiled: &Compiled) -> Option<String> {
    let first = compiled.problems().first()?;
    let count = compiled.all_problems();
    Some(format!("{count} units of its debug information are lost: {}", first.why))
}

/// Whether debug information is missing because its file was not found.
fn lacks_files(compiled: &Compiled) -> bool {
    compiled
        .problems()
        .iter()
        .any(|problem| matches!(problem.why, DwarfError::Split { .. } | DwarfError::Supplementary))
}

fn create(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Removes indexes and notes that were not used for long, and files that a process has left while it wrote.
fn remove_unused(folder: &Path, now: SystemTime) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let extension = Path::new(&name).extension();
        let is_own = extension.is_some_and(|extension| extension == INDEX || extension == NOTE)
            || name.as_encoded_bytes().starts_with(PREFIX.as_bytes());
        let used = entry.metadata().and_then(|file| file.modified());
        let is_unused = used.is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age > UNUSED));
        if is_own && is_unused {
            // Another process may have removed the file.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A folder that is removed at the end.
#[derive(Debug)]
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn create() -> io::Result<Self> {
        let folder = std::env::temp_dir();
        let mut number = 0;
        loop {
            let path = folder.join(format!("otlpprof-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 100 => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // Nothing more can be done about a folder that cannot be removed.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_that_nobody_uses_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        for (name, age) in [
            ("old.symbols", 31),
            ("old.used", 31),
            ("young.symbols", 29),
            ("young.used", 29),
            (".incomplete-77-0", 31),
            ("other", 99),
        ] {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(now - Duration::from_secs(age * 24 * 3600)).unwrap();
        }
        remove_unused(folder.path(), now);
        let mut left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["other", "young.symbols", "young.used"]);
    }
}
