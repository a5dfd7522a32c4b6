//! Recordings of JDK Flight Recorder to test with.
//!
//! | Module | Duty |
//! |---|---|
//! | [`synthetic`] | recordings of a given shape |
//! | [`random_frames`] | recordings whose stacks share nothing |
//! | [`converted`] | recordings as the command converts them |

pub mod converted;
pub mod random_frames;
pub mod synthetic;

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::this_build;

/// The recordings that scripts/jfr-corpus.sh makes, by name.
///
/// # Panics
/// If the script fails.
pub fn corpus() -> &'static HashMap<String, PathBuf> {
    static CORPUS: OnceLock<HashMap<String, PathBuf>> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let made = Command::new(this_build::project().join("scripts/jfr-corpus.sh")).output().expect("bash");
        assert!(made.status.success(), "jfr-corpus.sh: {}", String::from_utf8_lossy(&made.stderr));
        let directory = PathBuf::from(String::from_utf8(made.stdout).unwrap().trim());
        let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let recordings = files.filter(|path| path.extension().is_some_and(|extension| extension == "jfr"));
        recordings.map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), path)).collect()
    })
}

/// The recordings for whose names `wanted` is true, in the order of their names.
///
/// # Panics
/// If there is no such recording.
#[track_caller]
pub fn recordings(wanted: impl Fn(&str) -> bool) -> Vec<(&'static str, Vec<u8>)> {
    let mut found: Vec<_> = corpus().iter().filter(|(name, _)| wanted(name)).collect();
    assert!(!found.is_empty(), "no such recording");
    found.sort();
    found.into_iter().map(|(name, path)| (&**name, std::fs::read(path).unwrap())).collect()
}

/// The program `jfr` of the newest full JDK in Debian's directory.
pub fn jfr_program() -> Option<PathBuf> {
    let homes = std::fs::read_dir("/usr/lib/jvm").ok()?.map(|home| home.unwrap().path());
    let mut programs: Vec<_> = homes.map(|home| home.join("bin/jfr")).filter(|jfr| jfr.is_file()).collect();
    // The directory has JDK 17 and Temurin 25, recognised by name. The newest reader knows the most event
    // types.
    programs.sort_by_key(|path| path.to_string_lossy().contains("25"));
    programs.pop()
}
