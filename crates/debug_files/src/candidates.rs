//! The files that were found for one object, with their identity checked.
use otlpprof_elf::debug_link::DebugLink;

use std::path::{Path, PathBuf};

use super::examined::{Examined, open};
use super::files::{FileKind, Quality};
use super::identity::ObjectIdentity;
use super::not_located::Rejected;

/// A file of the object.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    pub(super) examined: Examined,
}

impl Candidate {
    /// Whether the file is of use where there is no debug information.
    pub(super) fn has_symbols(&self) -> bool {
        self.examined.quality >= Quality::SymbolTable
    }
}

/// The files of one object, in the order of their places.
#[derive(Debug)]
pub(super) struct Candidates {
    identity: ObjectIdentity,
    found: Vec<Candidate>,
    rejected: Option<Rejected>,
    /// Debug links without their file: one line each.
    dangling: Vec<String>,
}

impl Candidates {
    pub(super) fn new(identity: &ObjectIdentity) -> Self {
        Self { identity: identity.clone(), found: Vec::new(), rejected: None, dangling: Vec::new() }
    }

    /// The identity of the files.
    pub(super) fn identity(&self) -> &ObjectIdentity {
        &self.identity
    }

    /// Adds the build-id of a file that was found by its content to the identity, and returns whether the
    /// identity is a wider one now.
    pub(super) fn widen(&mut self) -> bool {
        let of_objects = self.found.iter().find_map(|candidate| candidate.examined.build_id);
        let is_wider = self.identity.build_id.is_none() && of_objects.is_some();
        self.identity.build_id = self.identity.build_id.or(of_objects);
        is_wider
    }

    /// Adds a file if it is there and has the identity.
    pub(super) fn add(&mut self, path: &Path) {
        let Some(examined) = self.examine(path) else { return };
        if self.is_object(&examined) {
            self.found.push(Candidate { path: path.to_owned(), examined });
        } else {
            self.reject(path, format!("{}, not {}", examined.described(), self.identity));
        }
    }

    /// Adds a file of the store. The debug file of an object without a build-id has no identity of its own:
    /// the object's debug link gives its checksum.
    pub(super) fn add_stored(&mut self, path: &Path, kind: FileKind) {
        let is_by_hash = self.identity.build_id.is_none();
        if !is_by_hash || kind == FileKind::Executable {
            return self.add(path);
        }
        let executable = path.with_file_name(FileKind::Executable.name());
        let Some(object) = self.examine(&executable).filter(|object| self.is_object(object)) else { return };
        let Some(examined) = self.examine(path) else { return };
        if self.is_object(&examined) || object.debug_link.is_some_and(|link| has_checksum(path, &link)) {
            self.found.push(Candidate { path: path.to_owned(), examined });
        } else {
            self.reject(path, "another CRC-32 than the debug link's".to_owned());
        }
    }

    /// Adds a file that a server has: one with the identity, or the debug file of a debug link.
    pub(super) fn add_served(&mut self, path: &Path, link: Option<&DebugLink>) {
        let Some(examined) = self.examine(path) else { return };
        let is_linked =
            || self.identity.build_id.is_none() && link.is_some_and(|link| has_checksum(path, link));
        if self.is_object(&examined) || is_linked() {
            self.found.push(Candidate { path: path.to_owned(), examined });
        }
    }

    /// Adds a file beside an object, of a name that debug files have, if it belongs to the object: by its
    /// build-id, or by the checksum of the object's debug link.
    pub(super) fn add_beside(&mut self, path: &Path, object: &Candidate) {
        let Some(examined) = self.examine(path) else { return };
        let is_objects = match (&examined.build_id, &object.examined.build_id) {
            (Some(found), Some(wanted)) => found == wanted,
            (None, _) => object.examined.debug_link.as_ref().is_some_and(|link| has_checksum(path, link)),
            _ => false,
        };
        if is_objects {
            self.found.push(Candidate { path: path.to_owned(), examined });
        } else {
            self.reject(
                path,
                format!("{}, and it is expected to be {}'s", examined.described(), object.path.display()),
            );
        }
    }

    /// Adds a file to which a debug link may point, and returns whether it is the linked one.
    pub(super) fn add_linked(&mut self, path: &Path, link: &DebugLink, object: &Candidate) -> bool {
        if self.found.iter().any(|candidate| candidate.path == path) {
            return true;
        }
        let Some(examined) = self.examine(path) else { return false };
        let is_linked = match (&examined.build_id, &object.examined.build_id) {
            // The checksum need not be read then.
            (Some(found), Some(wanted)) => found == wanted,
            _ => has_checksum(path, link),
        };
        if is_linked {
            self.found.push(Candidate { path: path.to_owned(), examined });
        } else {
            let wanted = object.examined.described();
            let why = format!(
                "neither the identity ({wanted}) nor the CRC-32 ({:08x}) of the debug link",
                link.crc
            );
            self.reject(path, why);
        }
        is_linked
    }

    /// Keeps a debug link whose file is not found.
    pub(super) fn add_dangling(&mut self, link: &DebugLink, object: &Candidate) {
        self.dangling.push(format!(
            "{} names a debug file that is not found: {} with CRC-32 {:08x}",
            object.path.display(),
            link.name.display(),
            link.crc
        ));
    }

    /// Debug links without their file: one line each. None if there is debug information all the same.
    pub(super) fn problems(&self) -> Vec<String> {
        if self.quality() == Quality::DebugInfo { Vec::new() } else { self.dangling.clone() }
    }

    /// The best quality of all files.
    pub(super) fn quality(&self) -> Quality {
        self.found.iter().map(|candidate| candidate.examined.quality).max().unwrap_or_default()
    }

    /// Whether a file has a complete symbol table.
    pub(super) fn has_symbols(&self) -> bool {
        self.found.iter().any(|candidate| candidate.examined.has_symbol_table)
    }

    /// Whether any file was found.
    pub(super) fn has_any(&self) -> bool {
        !self.found.is_empty()
    }

    /// Whether the executable or library itself was found.
    pub(super) fn has_object(&self) -> bool {
        self.found.iter().any(|candidate| candidate.examined.has_code)
    }

    /// The executables or libraries, the files that name debug files.
    pub(super) fn objects(&self) -> Vec<Candidate> {
        self.found.iter().filter(|candidate| candidate.examined.has_code).cloned().collect()
    }

    /// The best of the selected files. Of equally good ones the first.
    pub(super) fn best(&self, select: impl Fn(&Candidate) -> bool) -> Option<&Candidate> {
        let selected = self.found.iter().filter(|candidate| select(candidate));
        // `max_by_key` returns the last of equal ones.
        selected.rev().max_by_key(|candidate| candidate.examined.quality)
    }

    /// The first file that was expected to belong to the object and does not.
    pub(super) fn into_rejected(self) -> Option<Rejected> {
        self.rejected
    }

    /// Examines a file that is there and was not found before.
    fn examine(&mut self, path: &Path) -> Option<Examined> {
        if self.found.iter().any(|candidate| candidate.path == path) || !path.is_file() {
            return None;
        }
        match Examined::of_path(path) {
            Ok(examined) => Some(examined),
            Err(error) => {
                self.reject(path, error.to_string());
                None
            }
        }
    }

    fn is_object(&self, examined: &Examined) -> bool {
        match (&self.identity.build_id, &self.identity.htlhash) {
            (Some(build_id), _) if examined.build_id.is_some() => {
                examined.build_id.as_ref() == Some(build_id)
            }
            (_, Some(htlhash)) => examined.htlhash == *htlhash,
            _ => false,
        }
    }

    fn reject(&mut self, path: &Path, why: String) {
        self.rejected.get_or_insert_with(|| Rejected { path: path.to_owned(), why });
    }
}

fn has_checksum(path: &Path, link: &DebugLink) -> bool {
    open(path).is_ok_and(|source| link.is_of(&source))
}
