//! The temporary folder with a file for each profiled process.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use nix::unistd::mkdtemp;

/// The ending of the files' names, after the process id.
const ENDING: &str = ".otlp";

/// A folder that is removed with its files when this value is dropped.
#[derive(Debug)]
pub(super) struct ProfileFolder {
    path: PathBuf,
}

/// The profiles of a process.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProcessFile {
    /// The process's id, as the process sees it.
    pub(super) pid: u32,
    pub(super) path: PathBuf,
}

impl ProfileFolder {
    /// Creates the folder among the temporary files, for this user only.
    pub(super) fn create() -> anyhow::Result<Self> {
        let parent = std::env::temp_dir();
        let failed = || format!("no folder for profiles in {}; set TMPDIR to another one", parent.display());
        // The program may have another working directory.
        let parent = parent.canonicalize().with_context(failed)?;
        let path = mkdtemp(&parent.join("otlpprof-run-XXXXXX")).with_context(failed)?;
        Ok(Self { path })
    }

    /// The value of the agent's option `file`.
    ///
    /// # Errors
    /// The agent's options cannot express the folder's path.
    pub(super) fn file_option(&self) -> anyhow::Result<String> {
        let path = self.path.to_str().filter(|path| !path.contains(','));
        let path = path.with_context(|| {
            let path = self.path.display();
            format!("{path}: options cannot name a folder with a comma or other bytes than UTF-8; set TMPDIR")
        })?;
        Ok(format!("{}/%p{ENDING}", path.replace('%', "%%")))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The files, in the order of their processes.
    pub(super) fn files(&self) -> anyhow::Result<Vec<ProcessFile>> {
        let entries = fs::read_dir(&self.path).with_context(|| self.path.display().to_string())?;
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.with_context(|| self.path.display().to_string())?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if let Some(pid) = name.and_then(|name| name.strip_suffix(ENDING)?.parse().ok()) {
                files.push(ProcessFile { pid, path });
            }
        }
        files.sort_unstable_by_key(|file| file.pid);
        Ok(files)
    }
}

impl Drop for ProfileFolder {
    fn drop(&mut self) {
        // A process that still writes may create another file meanwhile. It then stays behind.
        let _ = fs::remove_dir_all(&self.path);
    }
}
