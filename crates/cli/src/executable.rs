//! The file of a program that a command line names.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use nix::unistd::{AccessFlags, access};

/// The folders in which execvp(3) looks for a program if there is no PATH.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The file that execvp(3) executes, if there is one. `path` has the value of PATH.
pub(super) fn find(program: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    let is_executable = |file: &PathBuf| file.is_file() && access(file, AccessFlags::X_OK).is_ok();
    if program.as_bytes().contains(&b'/') {
        return Some(program.into()).filter(is_executable);
    }
    let folders = env::split_paths(path.unwrap_or(DEFAULT_PATH.as_ref()));
    folders.map(|folder| folder.join(program)).find(is_executable)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn programs_are_found_by_their_path_or_in_path() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str, mode: u32| {
            let file = folder.path().join(name);
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            file
        };
        let (program, text) = (place("program", 0o755), place("text", 0o644));
        let path = Some(folder.path().as_os_str());
        assert_eq!(find("program".as_ref(), path), Some(program.clone()));
        assert_eq!(find(program.as_os_str(), None), Some(program));
        assert_eq!(find("text".as_ref(), path), None);
        assert_eq!(find(text.as_os_str(), None), None);
        assert_eq!(find(folder.path().as_os_str(), None), None, "a folder");
    }
}
