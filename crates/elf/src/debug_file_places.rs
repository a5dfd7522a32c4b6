//! The places at which the debug file of an executable or library is installed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use otlpprof_core::build_id::BuildId;

/// The root of the debug files that a distribution installs.
pub const DEBUG_ROOT: &str = "/usr/lib/debug";

/// The debug file and the object of a build-id in the `.build-id` tree of a root; `None` for a build-id of
/// one byte, which has no place there.
pub fn build_id_places(root: &Path, id: &BuildId) -> Option<[PathBuf; 2]> {
    let digits = id.to_string();
    let (first, rest) = digits.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())?;
    let folder = root.join(".build-id").join(first);
    Some([folder.join(format!("{rest}.debug")), folder.join(rest)])
}

/// The places of the file that a debug link names, in GDB's order (its manual, "Separate Debug Files"):
/// beside the object, in `.debug` beside the object, and at the object's path below each root. For an object
/// that was found elsewhere than at its `original` path, below the roots at both paths.
pub fn debug_link_places<P: AsRef<Path>>(
    object: &Path,
    original: Option<&Path>,
    name: &OsStr,
    roots: &[P],
) -> Vec<PathBuf> {
    let real = object.canonicalize().ok();
    let beside = distinct_folders(&[Some(object), real.as_deref()]);
    let installed = distinct_folders(&[Some(object), real.as_deref(), original]);
    let mut places = Vec::new();
    for folder in beside {
        places.extend([folder.join(name), folder.join(".debug").join(name)]);
    }
    for root in roots {
        places.extend(installed.iter().map(|folder| below(root.as_ref(), folder).join(name)));
    }
    places
}

/// A folder of this machine below a root of debug files.
pub fn below(root: &Path, folder: &Path) -> PathBuf {
    root.join(folder.strip_prefix("/").unwrap_or(folder))
}

fn distinct_folders<'p>(files: &[Option<&'p Path>]) -> Vec<&'p Path> {
    let mut folders = Vec::new();
    for folder in files.iter().flatten().filter_map(|file| file.parent()) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debug_link_is_searched_at_gdbs_places() {
        let places = debug_link_places(
            Path::new("/no/such/folder/a.so"),
            Some(Path::new("/opt/app/a.so")),
            OsStr::new("a.dbg"),
            &["/usr/lib/debug", "/opt/debug"],
        );
        let expected = [
            "/no/such/folder/a.dbg",
            "/no/such/folder/.debug/a.dbg",
            "/usr/lib/debug/no/such/folder/a.dbg",
            "/usr/lib/debug/opt/app/a.dbg",
            "/opt/debug/no/such/folder/a.dbg",
            "/opt/debug/opt/app/a.dbg",
        ];
        assert_eq!(places, expected.map(PathBuf::from));
    }

    #[test]
    fn a_link_to_an_object_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (real, link) = (folder.join("real/a.so"), folder.join("a.so"));
        std::fs::create_dir(folder.join("real")).unwrap();
        std::fs::write(&real, "").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let places = debug_link_places(&link, None, OsStr::new("a.dbg"), &["/d"]);
        let expected = ["a.dbg", ".debug/a.dbg", "real/a.dbg", "real/.debug/a.dbg"];
        assert_eq!(places[..4], expected.map(|name| folder.join(name)));
        let installed = [folder.clone(), folder.join("real")];
        assert_eq!(places[4..], installed.map(|folder| below(Path::new("/d"), &folder).join("a.dbg")));
        assert_eq!(debug_link_places(&real, None, OsStr::new("a.dbg"), &["/d"]).len(), 3);
    }

    #[test]
    fn build_ids_have_their_place_in_a_tree() {
        let places = |id| build_id_places(Path::new("/d"), &BuildId::from_hex(id).unwrap());
        let expected = ["/d/.build-id/ab/cd01.debug", "/d/.build-id/ab/cd01"].map(PathBuf::from);
        assert_eq!(places("ABCD01"), Some(expected));
        assert_eq!(places("ab"), None);
    }
}
