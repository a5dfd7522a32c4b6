//! The agent's library: the one beside the command, checked against the JVM, and made visible to it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use goblin::elf::Elf;
use goblin::elf::header::{EM_AARCH64, EM_X86_64, header64};
use otlpprof_elf::build_id;

use super::error::AttachError;
use super::process::JvmProcess;
use super::target_files::{TargetFiles, TemporaryName, inode, random_name};
use crate::agent_library;

/// The agent's library.
pub(super) struct Library {
    path: PathBuf,
    bytes: Vec<u8>,
    inode: u64,
    device: u64,
    build_id: String,
}

/// The library as the JVM sees it.
pub(super) struct VisibleLibrary {
    /// The path in the JVM's namespace.
    pub(super) path: PathBuf,
    /// The file, if it was copied for the JVM.
    pub(super) copy: Option<TemporaryName>,
}

impl Library {
    /// Reads the library at `path`, or else the one that is installed with this command.
    pub(super) fn read(path: Option<&Path>) -> Result<Self, AttachError> {
        let path = path.map_or_else(agent_library::expected, |path| Ok(path.to_owned()));
        let path = path.map_err(AttachError::Wait)?;
        let failed = |error: String| AttachError::Library { path: path.clone(), error };
        let io_failed = |error: std::io::Error| failed(error.to_string());
        let path = path.canonicalize().map_err(io_failed)?;
        let metadata = fs::metadata(&path).map_err(io_failed)?;
        let bytes = fs::read(&path).map_err(io_failed)?;
        let build_id = build_id::of_file(&path).map_err(|error| failed(error.to_string()))?.to_string();
        Ok(Self { bytes, inode: metadata.ino(), device: metadata.dev(), build_id, path })
    }

    /// Fails if the JVM's dynamic linker cannot load the library.
    pub(super) fn check(&self, process: &JvmProcess, files: &TargetFiles) -> Result<(), AttachError> {
        let (path, pid) = (self.path.clone(), process.pid);
        let failed = |error: String| AttachError::Library { path: path.clone(), error };
        let library = Elf::parse(&self.bytes).map_err(|error| failed(error.to_string()))?;
        let libjvm = process.maps.libjvm.as_ref().and_then(|file| files.read(&file.path).ok());
        let mut header = [0; header64::SIZEOF_EHDR];
        // A libjvm.so that cannot be read any more is no reason not to try.
        if let Some(mut libjvm) = libjvm
            && libjvm.read_exact(&mut header).is_ok()
            && let Ok(jvm) = Elf::parse_header(&header)
            && jvm.e_machine != library.header.e_machine
        {
            let (library, jvm) = (machine(library.header.e_machine), machine(jvm.e_machine));
            return Err(AttachError::Architecture { path, library, pid, jvm });
        }
        let is_musl = library.libraries.iter().any(|name| name.contains("musl") || *name == "libc.so");
        if is_musl != process.maps.has_musl {
            let name = |is_musl| if is_musl { "musl" } else { "glibc" };
            let (library, jvm) = (name(is_musl), name(process.maps.has_musl));
            return Err(AttachError::CLibrary { path, library, pid, jvm });
        }
        Ok(())
    }

    /// Returns the library's path in the JVM's namespace. Copies the library to the JVM's /tmp if the JVM
    /// does not see the very same file under its own path.
    ///
    /// The copy's name has the build-id, so that a reader of /proc/PID/maps finds the version, and a random
    /// part: another user who knows the build-id cannot put a file of his own there. The copy stays after the
    /// library was loaded, since later commands load the same path.
    pub(super) fn make_visible(
        &self,
        process: &JvmProcess,
        files: &TargetFiles,
    ) -> Result<VisibleLibrary, AttachError> {
        let seen = files.read(&self.path).and_then(|file| file.metadata());
        if seen.is_ok_and(|seen| (seen.ino(), seen.dev()) == (self.inode, self.device)) {
            return Ok(VisibleLibrary { path: self.path.clone(), copy: None });
        }
        if files.tmp_is_noexec() {
            return Err(AttachError::TmpNoExec(process.pid));
        }
        files.check_tmp()?;
        let random = random_name().map_err(AttachError::Wait)?;
        let name = format!("libotlpprof-{}-{random}.so", self.build_id);
        let (mut file, copy) = files.create(&name, 0o500).map_err(|error| files.tmp_error(error))?;
        file.write_all(&self.bytes).map_err(|error| files.tmp_error(error))?;
        Ok(VisibleLibrary { path: Path::new("/tmp").join(name), copy: Some(copy) })
    }

    /// Whether this library is the file of this inode.
    pub(super) fn has_inode(&self, inode: u64) -> bool {
        self.inode == inode
    }
}

/// The path of the agent that the JVM has loaded. Fails if the path leads to another file by now: the JVM
/// might load a second copy. A file that is gone needs not be there: the dynamic linker of glibc first looks
/// for the name among loaded libraries. The jar of the Java API deletes the file that it has loaded.
pub(super) fn loaded(process: &JvmProcess, files: &TargetFiles) -> Result<Option<PathBuf>, AttachError> {
    let Some(agent) = &process.maps.agent else { return Ok(None) };
    let found = files.read(&agent.path).and_then(|file| inode(&file));
    if found.is_ok_and(|inode| inode != agent.inode) {
        return Err(AttachError::AgentFileReplaced { pid: process.pid, path: agent.path.clone() });
    }
    Ok(Some(agent.path.clone()))
}

fn machine(number: u16) -> &'static str {
    match number {
        EM_X86_64 => "x86-64",
        EM_AARCH64 => "aarch64",
        _ => "another architecture",
    }
}
