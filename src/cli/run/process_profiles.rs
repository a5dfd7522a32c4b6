//! The profiles that the processes of a run have written until the program's end.

use std::fs;
use std::path::{Path, PathBuf};

use super::profile_folder::{ProcessFile, ProfileFolder};
use crate::cli::results::say;
use crate::cli::whole_messages;

/// The files that have messages. A line reports each problem, and the absence of profiles.
pub(super) fn files(folder: &ProfileFolder, library: &Path) -> Vec<PathBuf> {
    let files = match folder.files() {
        Ok(files) => whole_files(files, library),
        Err(error) => {
            say(&format!("{error:#}"));
            return Vec::new();
        }
    };
    if files.is_empty() {
        say("no profile was written: no JVM has run under the agent, or none had a sample");
    }
    files
}

/// The files that have messages, without parts of messages.
fn whole_files(files: Vec<ProcessFile>, library: &Path) -> Vec<PathBuf> {
    let mut whole = Vec::new();
    for ProcessFile { pid, path } in files {
        if has_mapped(pid, library) {
            say(&format!("process {pid} has not ended: only the profiles until now are shown"));
        }
        match whole_messages::cut(&path) {
            Ok(0) => {}
            Ok(bytes) => say(&format!("process {pid}: {bytes} bytes of an unfinished message are left out")),
            Err(error) => say(&format!("process {pid}: {error}")),
        }
        if fs::metadata(&path).is_ok_and(|file| file.len() > 0) {
            whole.push(path);
        }
    }
    whole
}

/// Whether a process runs that has the library mapped. Another process may have the id meanwhile.
fn has_mapped(pid: u32, library: &Path) -> bool {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    String::from_utf8_lossy(&maps).contains(&*library.to_string_lossy())
}
