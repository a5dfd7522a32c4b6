//! The agent's library, which is installed with this command.

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
    let command = std::env::current_exe().context("the path of this command")?;
    let folder = command.parent().unwrap_or(Path::new("/"));
    let places = [folder.to_owned(), folder.with_file_name("lib")];
    let found = places.iter().find_map(|place| {
        let path = place.join(NAME).canonicalize().ok()?;
        path.is_file().then_some(path)
    });
    found.with_context(|| {
        let [beside, lib] = places.each_ref().map(|place| place.display());
        format!("the agent's library, {NAME}, is neither in {beside} nor in {lib}: name it with --library")
    })
}
