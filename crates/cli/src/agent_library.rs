//! The agent's library, which is installed with this command.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// The file's name.
const NAME: &str = "libotlpprof.so";

/// The absolute path of the library: the given one, else the one that is installed with this command.
pub(super) fn find(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(given) = given {
        let found = given.canonicalize().with_context(|| format!("--library {}", given.display()))?;
        if !found.is_file() {
            bail!("--library {}: not a file", given.display());
        }
        return Ok(found);
    }
    let folders = folders().context("the command does not find its own path")?;
    installed(&folders).with_context(|| {
        let [beside, lib, own] = folders.each_ref().map(|folder| folder.display());
        format!(
            "the agent's library, {NAME}, is neither in {beside} nor in {lib} nor in {own}: name it with \
             --library"
        )
    })
}

/// The path of the library that is installed with this command, or else the path beside this command, where
/// the library should be.
pub(super) fn expected() -> io::Result<PathBuf> {
    let folders = folders()?;
    Ok(installed(&folders).unwrap_or_else(|| folders[0].join(NAME)))
}

/// The folders that may have the library.
fn folders() -> io::Result<[PathBuf; 3]> {
    Ok(folders_of(&std::env::current_exe()?))
}

/// The folders that may have the library of this command: a build's, an unpacked archive's (`lib` beside
/// `bin`), and a package's (`/usr/lib/otlpprof`, whose libraries no program is linked with).
fn folders_of(command: &Path) -> [PathBuf; 3] {
    let folder = command.parent().unwrap_or(Path::new("/"));
    let lib = folder.with_file_name("lib");
    [folder.to_owned(), lib.clone(), lib.join("otlpprof")]
}

fn installed(folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().find_map(|folder| {
        let path = folder.join(NAME).canonicalize().ok()?;
        path.is_file().then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_of_a_build_an_archive_and_a_package_is_found() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let folders = folders_of(&root.join("bin/otlpprof"));
        assert_eq!(installed(&folders), None);
        for folder in ["lib/otlpprof", "lib", "bin"] {
            let library = root.join(folder).join(NAME);
            std::fs::create_dir_all(library.parent().unwrap()).unwrap();
            std::fs::write(&library, "").unwrap();
            assert_eq!(installed(&folders), Some(library));
        }
    }
}
