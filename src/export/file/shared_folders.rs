//! Files in folders that others can write, such as /tmp: whoever can write there may have put a link to a file of
//! somebody else's, or a file that they can read, where profiles are to be.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use nix::unistd::geteuid;

use super::FileError;

/// Whether another user can make and replace files in a folder. One that cannot be looked at is taken for such.
pub(super) fn others_can_write(folder: &Path) -> bool {
    let folder = if folder == Path::new("") { Path::new(".") } else { folder };
    fs::metadata(folder).map_or(true, |metadata| metadata.mode() & 0o022 != 0 || is_of_another(&metadata))
}

/// Refuses a path that goes through a symbolic link in such a folder.
pub(super) fn check_links(path: &Path) -> Result<(), FileError> {
    let mut folder = PathBuf::new();
    for component in path.components() {
        let next = folder.join(component);
        if matches!(component, Component::Normal(_)) && next.is_symlink() && others_can_write(&folder) {
            return Err(FileError::Link { path: path.to_owned(), link: next });
        }
        folder = next;
    }
    Ok(())
}

/// Refuses a file in such a folder that another user has made: they can read what is appended to it.
pub(super) fn check_owner(path: &Path, file: &Metadata) -> Result<(), FileError> {
    if is_of_another(file) { Err(FileError::Owner { path: path.to_owned() }) } else { Ok(()) }
}

/// Whether another user than this process's, and than root, has it.
fn is_of_another(metadata: &Metadata) -> bool {
    metadata.uid() != geteuid().as_raw() && metadata.uid() != 0
}
