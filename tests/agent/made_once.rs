//! Folders that tests share although each has a process of its own.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A folder of this build's temporary files with this name, which `make` fills from `inputs`, files or
/// folders. The first test that needs the folder makes it while the others wait. A later test takes the
/// folder as it is, unless an input has changed.
///
/// # Panics
/// If `make` panics, or if an input cannot be read.
pub(crate) fn made_once(name: &str, inputs: &[PathBuf], make: impl FnOnce(&Path)) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let lock = File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let state = state_of(inputs);
    let stamp = folder.with_extension("made-of");
    if fs::read_to_string(&stamp).is_ok_and(|made_of| made_of == state) {
        return folder;
    }
    let _ = fs::remove_file(&stamp);
    let _ = fs::remove_dir_all(&folder);
    make(&folder);
    fs::write(&stamp, state).unwrap();
    folder
}

/// A line for each file: its path, length, and time of modification.
fn state_of(inputs: &[PathBuf]) -> String {
    let mut state = String::new();
    let mut paths = inputs.to_vec();
    while let Some(path) = paths.pop() {
        let metadata = fs::metadata(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        if metadata.is_dir() {
            let entries = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
            let mut entries: Vec<_> = entries.collect();
            entries.sort();
            paths.extend(entries);
        } else {
            let modified = metadata.modified().unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap();
            writeln!(state, "{} {} {}", path.display(), metadata.len(), modified.as_nanos()).unwrap();
        }
    }
    state
}
