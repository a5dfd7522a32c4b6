//! The folder of indexes: one for each object and its files, made when it is first needed.
//!
//! An index is a file `indexes/<identity of the object>-<fingerprint of its files>.symbols`. It is written
//! beside its place and renamed, so that any number of processes may make the same one. An index of another
//! version, of other files, or with damage is made again. Indexes that nobody has used for 30 days are
//! removed when another one is made. Where the folder cannot be written, a temporary one is used.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::open_files::OpenFiles;
use crate::debug_files::ObjectIdentity;
use crate::dwarf::index::{Identity, Index, write};
use crate::dwarf::{Compiled, DwarfError};
use crate::elf::source::FileSource;
use crate::incomplete_file::PREFIX;

/// The time after which an unused index is removed.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 3600);
/// The age at which the time of an index's last use is renewed.
const RENEWED: Duration = Duration::from_secs(24 * 3600);
const EXTENSION: &str = "symbols";

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

/// An index, and the losses of debug information when it was made.
#[derive(Debug)]
pub(super) struct OpenIndex {
    pub(super) index: Index<FileSource>,
    /// The losses in words, for people.
    pub(super) losses: Option<String>,
}

/// A folder of indexes.
#[derive(Debug, Default)]
pub struct IndexCache {
    folder: Option<PathBuf>,
    temporary: Option<TemporaryFolder>,
}

impl IndexCache {
    /// The indexes in a folder, which is created when it is needed.
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: Some(folder.join("indexes")), temporary: None }
    }

    /// The index of an object, which is made if there is none.
    ///
    /// # Errors
    /// If the object's files are damaged, or no index can be written.
    pub(super) fn open(
        &mut self,
        object: &ObjectIdentity,
        files: &OpenFiles,
    ) -> Result<OpenIndex, IndexFailure> {
        let identity = files.identity(object);
        let name = name(&identity, files);
        let folders = [self.folder.as_deref(), self.temporary.as_ref().map(TemporaryFolder::path)];
        for folder in folders.into_iter().flatten() {
            if let Some(index) = usable(&folder.join(&name), &identity) {
                let lost = index.problems();
                let losses = (lost > 0).then(|| format!("{lost} units of its debug information are damaged"));
                return Ok(OpenIndex { index, losses });
            }
        }
        self.make(files, &identity, &name)
    }

    /// Makes the index of an object, whether there is one or not.
    ///
    /// # Errors
    /// As [`IndexCache::open`].
    pub(super) fn remake(
        &mut self,
        object: &ObjectIdentity,
        files: &OpenFiles,
    ) -> Result<OpenIndex, IndexFailure> {
        let identity = files.identity(object);
        self.make(files, &identity, &name(&identity, files))
    }

    fn make(
        &mut self,
        files: &OpenFiles,
        identity: &Identity,
        name: &str,
    ) -> Result<OpenIndex, IndexFailure> {
        let compiled = files.compile();
        let compiled =
            compiled.map_err(|why| IndexFailure::Damaged { path: files.path().to_owned(), why })?;
        let path = self.write(&compiled, identity, name).map_err(IndexFailure::Unwritable)?;
        let losses = losses(&compiled);
        drop(compiled);
        let index = FileSource::open(&path).map_err(|error| IndexFailure::Unreadable(error.to_string()))?;
        let index = Index::open(index).map_err(|error| IndexFailure::Unreadable(error.to_string()))?;
        Ok(OpenIndex { index, losses })
    }

    /// Writes an index. One that lacks what may be found later is not kept.
    fn write(&mut self, compiled: &Compiled, identity: &Identity, name: &str) -> io::Result<PathBuf> {
        if let Some(folder) = self.folder.as_deref().filter(|_| !lacks_files(compiled)) {
            let path = folder.join(name);
            if create(folder).and_then(|()| write(compiled, identity, &path)).is_ok() {
                remove_unused(folder, SystemTime::now());
                return Ok(path);
            }
        }
        let folder = match &mut self.temporary {
            Some(folder) => folder,
            none => none.insert(TemporaryFolder::create()?),
        };
        let path = folder.path().join(name);
        write(compiled, identity, &path)?;
        Ok(path)
    }
}

fn name(identity: &Identity, files: &OpenFiles) -> String {
    let object: String = identity.object.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{object}-{:016x}.{EXTENSION}", files.fingerprint(identity))
}

/// The index at a path, if it is whole as far as it is read here, and of these files.
fn usable(path: &Path, identity: &Identity) -> Option<Index<FileSource>> {
    let source = FileSource::open(path).ok()?;
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

/// Removes indexes that were not used for long, and files that a process has left while it wrote.
fn remove_unused(folder: &Path, now: SystemTime) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_own = Path::new(&name).extension().is_some_and(|extension| extension == EXTENSION)
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
        for (name, age) in
            [("old.symbols", 31), ("young.symbols", 29), (".incomplete-77-0", 31), ("other", 99)]
        {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(now - Duration::from_secs(age * 24 * 3600)).unwrap();
        }
        remove_unused(folder.path(), now);
        let mut left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["other", "young.symbols"]);
    }
}
