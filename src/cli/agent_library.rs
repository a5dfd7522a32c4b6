//! The agent's library, which is installed with this command.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// The file's name.
const NAME: &str = "libotlpprof.so";

/// The absolute path of the library: the given one, else the one beside this command, else the one in the
/// folder `lib` beside the command's folder.
pub(super) fn find(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(given) = given {
        let found = given.canonicalize().with_context(|| format!("--library {}", given.display()))?;
        if !found.is_file() {
            bail!("--library {}: not a file", given.display());
        }
        return Ok(found);
    }
    let folders = folders().context("the path of this command")?;
    installed(&folders).with_context(|| {
        let [beside, lib] = folders.each_ref().map(|folder| folder.display());
        format!("the agent's library, {NAME}, is neither in {beside} nor in {lib}: name it with --library")
    })
}

/// The path of the library that is installed with this command, or else the path beside this command, where
/// the library should be.
pub(super) fn expected() -> io::Result<PathBuf> {
    let folders = folders()?;
    Ok(installed(&folders).unwrap_or_else(|| folders[0].join(NAME)))
}

/// The folders that may have the library.
fn folders() -> io::Result<[PathBuf; 2]> {
    let command = std::env::current_exe()?;
    let folder = command.parent().unwrap_or(Path::new("/"));
    Ok([folder.to_owned(), folder.with_file_name("lib")])
}

fn installed(folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().find_map(|folder| {
        let path = folder.join(NAME).canonicalize().ok()?;
        path.is_file().then_some(path)
    })
}
