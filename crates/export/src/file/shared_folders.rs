//! Checks for files in folders that other users can write, such as /tmp. Another user may have placed a link
//! to somebody else's file, or a file that they can read, at the path of the profiles.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use nix::unistd::geteuid;

use crate::file_error::FileError;

/// Whether another user can create and replace files in a folder. A folder that cannot be inspected counts as
/// such.
pub(super) fn others_can_write(folder: &Path) -> bool {
    let folder = if folder == Path::new("") { Path::new(".") } else { folder };
    fs::metadata(folder).map_or(true, |metadata| metadata.mode() & 0o022 != 0 || is_of_another(&metadata))
}

/// Refuses a path that goes through a symbolic link in a folder that others can write.
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

/// Refuses a file of another user, who can read the profiles appended to it. To be called for files in
/// folders that others can write.
pub(super) fn check_owner(path: &Path, file: &Metadata) -> Result<(), FileError> {
    if is_of_another(file) { Err(FileError::Owner { path: path.to_owned() }) } else { Ok(()) }
}

/// Whether the owner is neither this process's user nor root.
fn is_of_another(metadata: &Metadata) -> bool {
    metadata.uid() != geteuid().as_raw() && metadata.uid() != 0
}
