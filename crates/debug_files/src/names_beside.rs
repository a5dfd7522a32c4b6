//! The names of debug files beside their executable or library.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The endings of debug files beside their object.
const ENDINGS: [&str; 3] = ["debug", "dbg", "debuginfo"];

/// The usual names of the debug file of an object with this name, in a folder: the object's own name, with
/// another ending, or with one more ending.
pub(super) fn names_beside(folder: &Path, name: &OsStr) -> Vec<PathBuf> {
    let mut names = vec![name.to_owned()];
    for base in [Some(name), Path::new(name).file_stem()].into_iter().flatten() {
        names.extend(ENDINGS.map(|ending| {
            let mut name = OsString::from(base);
            name.push(".");
            name.push(ending);
            name
        }));
    }
    names.into_iter().map(|name| folder.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_files_have_more_endings_or_other_ones() {
        let names = names_beside(Path::new("/l"), OsStr::new("libjvm.so"));
        for name in ["libjvm.so", "libjvm.so.debug", "libjvm.debuginfo", "libjvm.dbg"] {
            assert!(names.contains(&Path::new("/l").join(name)), "{name}: {names:?}");
        }
    }
}
