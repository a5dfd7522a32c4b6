//! The files below a folder, by build-id, by the hash of their content, and by name.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use otlpprof_core::build_id::BuildId;
use otlpprof_elf::file::{ElfFile, FileError};
use otlpprof_elf::htlhash::HtlHash;
use otlpprof_elf::source::Source as _;
use otlpprof_incomplete_file::IncompleteFile;
use sha2::{Digest as _, Sha256};

use super::examined::{build_id_of, open};
use super::index_format::{ElfIdentity, IndexedFile, MOST_FILES, Version, decode, encode};

/// The most files and folders below one folder that are looked at.
const MOST_ENTRIES: usize = MOST_FILES;

/// The most bytes of a remembered index.
const MOST_BYTES: u64 = 2 << 30;

/// The ELF files below a folder.
#[derive(Debug, Default)]
pub(super) struct PathIndex {
    files: Vec<IndexedFile>,
    by_build_id: HashMap<BuildId, Vec<usize>>,
    by_hash: HashMap<HtlHash, Vec<usize>>,
    by_name: HashMap<OsString, Vec<usize>>,
    /// Parts of the folder that could not be read: one line each.
    pub(super) problems: Vec<String>,
}

impl PathIndex {
    /// Indexes a folder, or one file. Files that are as the folder `cache` remembers them are not read again.
    pub(super) fn of(folder: &Path, cache: Option<&Path>) -> Self {
        let remembered = cache.map(|cache| remembered_in(cache, folder));
        let before = remembered.as_deref().and_then(read_remembered).unwrap_or_default();
        let known: HashMap<&Path, &IndexedFile> =
            before.iter().map(|file| (file.path.as_path(), file)).collect();
        let mut walk = Walk {
            known,
            visited: HashSet::new(),
            files: Vec::new(),
            problems: Vec::new(),
            left: MOST_ENTRIES,
        };
        walk.visit_all(folder);
        let Walk { files, mut problems, .. } = walk;
        if let Some(path) = remembered.filter(|_| files != before)
            && let Err(error) = remember(&path, &files)
        {
            problems.push(format!("the index of {} cannot be kept: {error}", folder.display()));
        }
        Self::of_files(files, problems)
    }

    fn of_files(files: Vec<IndexedFile>, problems: Vec<String>) -> Self {
        let mut index = Self { problems, ..Self::default() };
        for (number, file) in files.iter().enumerate() {
            let Some(elf) = file.elf else { continue };
            if let Some(build_id) = elf.build_id {
                index.by_build_id.entry(build_id).or_default().push(number);
            }
            index.by_hash.entry(elf.htlhash).or_default().push(number);
            if let Some(name) = file.path.file_name() {
                index.by_name.entry(name.to_owned()).or_default().push(number);
            }
        }
        index.files = files;
        index
    }

    /// The files with this build-id.
    pub(super) fn with_build_id(&self, build_id: &BuildId) -> impl Iterator<Item = &Path> {
        self.paths(self.by_build_id.get(build_id))
    }

    /// The files with this content.
    pub(super) fn with_hash(&self, htlhash: &HtlHash) -> impl Iterator<Item = &Path> {
        self.paths(self.by_hash.get(htlhash))
    }

    /// The ELF files with this name.
    pub(super) fn called(&self, name: &OsStr) -> impl Iterator<Item = &Path> {
        self.paths(self.by_name.get(name))
    }

    fn paths(&self, numbers: Option<&Vec<usize>>) -> impl Iterator<Item = &Path> {
        numbers.into_iter().flatten().map(|&number| self.files[number].path.as_path())
    }
}

/// The file in which the content of a folder is remembered.
fn remembered_in(cache: &Path, folder: &Path) -> PathBuf {
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let digest = Sha256::digest(folder.as_os_str().as_bytes());
    let name: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    cache.join("paths").join(name)
}

fn read_remembered(path: &Path) -> Option<Vec<IndexedFile>> {
    let source = open(path).ok().filter(|source| source.len() <= MOST_BYTES)?;
    decode(&source.read(0, source.len()).ok()?)
}

fn remember(path: &Path, files: &[IndexedFile]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)?;
    let mut incomplete = IncompleteFile::inside(folder)?;
    incomplete.file.write_all(&encode(files))?;
    incomplete.persist(path)
}

/// A walk over a folder and all folders below it, links to folders included.
struct Walk<'a> {
    known: HashMap<&'a Path, &'a IndexedFile>,
    /// The device and number of each folder that was visited: links may lead in circles.
    visited: HashSet<(u64, u64)>,
    files: Vec<IndexedFile>,
    problems: Vec<String>,
    left: usize,
}

impl Walk<'_> {
    fn visit_all(&mut self, first: &Path) {
        let mut folders = Vec::new();
        match fs::metadata(first) {
            Ok(metadata) => self.visit(first.to_owned(), &metadata, &mut folders),
            Err(error) => self.problems.push(format!("{}: {error}", first.display())),
        }
        while let Some(folder) = folders.pop() {
            let mut entries = match entries(&folder) {
                Ok(entries) => entries,
                Err(error) => {
                    self.problems.push(format!("{}: {error}", folder.display()));
                    continue;
                }
            };
            // The order of a folder's entries differs from machine to machine.
            entries.sort_unstable();
            for path in entries {
                if self.left == 0 {
                    let problem = "{}: more than {MOST_ENTRIES} files; the others are not searched";
                    self.problems.push(problem.replace("{}", &first.display().to_string()));
                    return;
                }
                self.left -= 1;
                // A link without a target is no file.
                if let Ok(metadata) = fs::metadata(&path) {
                    self.visit(path, &metadata, &mut folders);
                }
            }
        }
    }

    fn visit(&mut self, path: PathBuf, metadata: &Metadata, folders: &mut Vec<PathBuf>) {
        if metadata.is_dir() {
            if self.visited.insert((metadata.dev(), metadata.ino())) {
                folders.push(path);
            }
        } else if metadata.is_file() && metadata.len() > 0 {
            let (seconds, nanoseconds) = (metadata.mtime(), metadata.mtime_nsec() as u32);
            let version = Version { len: metadata.len(), seconds, nanoseconds };
            let known = self.known.get(path.as_path()).filter(|known| known.version == version);
            let elf = match known {
                Some(known) => known.elf,
                None => match identity(&path) {
                    Ok(elf) => elf,
                    Err(error) => return self.problems.push(format!("{}: {error}", path.display())),
                },
            };
            self.files.push(IndexedFile { path, version, elf });
        }
    }
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

/// The identity of an ELF file; `None` for other files.
fn identity(path: &Path) -> io::Result<Option<ElfIdentity>> {
    let source = open(path)?;
    match ElfFile::parse(&source) {
        Ok(_) => {}
        Err(FileError::Io(error)) => return Err(error),
        Err(_) => return Ok(None),
    }
    Ok(Some(ElfIdentity { build_id: build_id_of(&source), htlhash: HtlHash::of(&source)? }))
}
