//! The files of one object, open.

use std::hash::Hasher as _;
use std::io;
use std::path::{Path, PathBuf};

use goblin::elf::section_header::SHT_SYMTAB;
use otlpprof_core::build_id::BuildId;
use otlpprof_debug_files::split_units::SplitUnits;
use otlpprof_debug_files::{ObjectFiles, ObjectIdentity};
use otlpprof_dwarf::index::{Identity, VERSION};
use otlpprof_dwarf::{Compiled, DwarfError, Inputs, compile};
use otlpprof_elf::build_id;
use otlpprof_elf::file::{ElfFile, FileError};
use otlpprof_elf::source::{FileSource, Source};
use twox_hash::XxHash64;

use super::address::Segments;
use super::split_files::ObjectSplitFiles;

/// A file that was located and cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct UnreadableFile {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub why: FileError,
}

/// The open files of an object.
#[derive(Debug)]
pub(super) struct OpenFiles {
    /// The file with the most information.
    debug: FileSource,
    debug_path: PathBuf,
    /// The executable or library, if it is another file that has symbols which the file above lacks.
    executable: Option<FileSource>,
    supplementary: Option<FileSource>,
    package: Option<FileSource>,
    mini: Option<Vec<u8>>,
    split: ObjectSplitFiles,
    segments: Segments,
}

impl OpenFiles {
    /// Opens the files; `None` if there are none.
    ///
    /// # Errors
    /// If a file cannot be opened, or is no ELF file.
    pub(super) fn open(files: &ObjectFiles, split: SplitUnits) -> Result<Option<Self>, UnreadableFile> {
        let Some(debug_path) = files.debug.as_ref().or(files.executable.as_ref()) else { return Ok(None) };
        let debug = open(debug_path)?;
        let other = files.executable.as_ref().filter(|path| *path != debug_path);
        let mut executable = other.map(open).transpose()?;
        let supplementary = files.supplementary.as_deref().map(open).transpose()?;
        let package = files.package.as_deref().map(open).transpose()?;
        let segments = match (other, &executable) {
            (Some(path), Some(executable)) => segments(path, executable, true)?,
            _ => segments(debug_path, &debug, files.executable.is_some())?,
        };
        if has_symbol_table(&debug) {
            // Nothing more is read of the executable, so that the index is the same with and without it.
            executable = None;
        }
        Ok(Some(Self {
            debug,
            debug_path: debug_path.clone(),
            executable,
            supplementary,
            package,
            mini: files.mini.clone(),
            split: ObjectSplitFiles(split),
            segments,
        }))
    }

    /// The segments of the object.
    pub(super) fn segments(&self) -> &Segments {
        &self.segments
    }

    /// The identity that an index of these files has.
    pub(super) fn identity(&self, object: &ObjectIdentity) -> Identity {
        let of_object = match (&object.build_id, &object.htlhash) {
            (Some(build_id), _) => build_id.as_bytes().to_vec(),
            (None, Some(htlhash)) => htlhash.0.to_vec(),
            (None, None) => Vec::new(),
        };
        let debug = bytes_of(build_id_of(&self.debug));
        Identity { object: of_object, debug, debug_len: self.debug.len() }
    }

    /// A number that is another one for other files: files of the same object that tell more or less have
    /// different indexes.
    pub(super) fn fingerprint(&self, identity: &Identity) -> u64 {
        let mut hasher = XxHash64::with_seed(u64::from(VERSION));
        let mut part = |id: &[u8], len: u64| {
            hasher.write_u64(id.len() as u64);
            hasher.write(id);
            hasher.write_u64(len);
        };
        part(&identity.object, identity.debug_len);
        part(&identity.debug, 0);
        for file in [&self.executable, &self.supplementary, &self.package] {
            match file {
                Some(file) => part(&bytes_of(build_id_of(file)), file.len()),
                None => part(&[], 0),
            }
        }
        part(&[], self.mini.as_ref().map_or(0, |mini| mini.len() as u64));
        hasher.finish()
    }

    /// Reads the debug information and the symbols of all addresses, or of these.
    ///
    /// # Errors
    /// If a file is damaged as a whole.
    pub(super) fn compile(&self, vaddrs: Option<&[u64]>) -> Result<Compiled, DwarfError> {
        let mini: Option<&[u8]> = self.mini.as_deref();
        compile(
            &Inputs {
                debug: &self.debug,
                object: self.executable.as_ref().map(shared),
                minidebug: mini.as_ref().map(shared),
                supplementary: self.supplementary.as_ref().map(shared),
                package: self.package.as_ref().map(shared),
                split: Some(&self.split),
            },
            vaddrs,
        )
    }

    /// The path of the file with the most information.
    pub(super) fn path(&self) -> &Path {
        &self.debug_path
    }
}

/// The bytes of a file, as several threads read them.
fn shared<S: Source + Sync>(source: &S) -> &(dyn Source + Sync) {
    source
}

fn open(path: impl AsRef<Path>) -> Result<FileSource, UnreadableFile> {
    let path = path.as_ref();
    let failed = |why: io::Error| UnreadableFile { path: path.to_owned(), why: why.into() };
    FileSource::open(path).map_err(failed)
}

fn segments(path: &Path, file: &FileSource, has_offsets: bool) -> Result<Segments, UnreadableFile> {
    let headers = ElfFile::parse(file).and_then(|elf| elf.program_headers());
    let failed = |why| UnreadableFile { path: path.to_owned(), why };
    Ok(Segments::new(&headers.map_err(failed)?, has_offsets))
}

/// Whether a file has the only symbol table that counts (`.symtab` with more than the empty first symbol).
fn has_symbol_table(file: &FileSource) -> bool {
    let sections = ElfFile::parse(file).and_then(|elf| elf.section_headers()).unwrap_or_default();
    sections.iter().any(|section| section.sh_type == SHT_SYMTAB && section.sh_size > section.sh_entsize)
}

/// The build-id of a file, which need not have one: the locator has checked the file.
fn build_id_of(file: &FileSource) -> Option<BuildId> {
    build_id::of_source(file).ok()
}

fn bytes_of(build_id: Option<BuildId>) -> Vec<u8> {
    build_id.map_or_else(Vec::new, |build_id| build_id.as_bytes().to_vec())
}
