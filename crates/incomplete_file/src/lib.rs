//! Files that get their name when they are complete: until then a reader sees the file that had the name
//! before, or none.
//!
//! In: the folder of the file. Out: the file, in place of any other of its name. Called where a file is
//! written that other processes read.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The beginning of the name that an incomplete file may have.
pub const PREFIX: &str = ".incomplete-";

/// A file that is removed unless it gets its name.
#[derive(Debug)]
pub struct IncompleteFile {
    /// The open file, for reading and writing.
    pub file: File,
    folder: PathBuf,
    /// The file's present name. None at first, except on file systems that cannot have files without a name:
    /// there a signal that ends the process leaves the file behind.
    name: Option<PathBuf>,
}

impl IncompleteFile {
    /// Creates a file on the file system of a folder.
    ///
    /// # Errors
    /// If the folder does not exist or cannot be written.
    pub fn inside(folder: &Path) -> io::Result<Self> {
        // An empty path is the parent of a path that is only a name.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let (file, name) = match options.clone().custom_flags(libc::O_TMPFILE).open(folder) {
            Ok(file) => (file, None),
            Err(_) => {
                let (name, file) = unused(folder, |name| options.clone().create_new(true).open(name))?;
                (file, Some(name))
            }
        };
        Ok(Self { file, folder: folder.to_owned(), name })
    }

    /// A second name of the file, which it gets apart from the first. On a file system without links, a copy.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn second(&self) -> io::Result<Self> {
        let (name, ()) = unused(&self.folder, |to| match (self.link(to), &self.name) {
            (Err(error), Some(name)) if error.kind() != io::ErrorKind::AlreadyExists => {
                fs::copy(name, to).map(drop)
            }
            (linked, _) => linked,
        })?;
        Ok(Self { file: self.file.try_clone()?, folder: self.folder.clone(), name: Some(name) })
    }

    /// Gives the file its name, in place of any file that has the name.
    ///
    /// # Errors
    /// If the place is in a folder that does not exist or cannot be written, or on another file system.
    pub fn persist(&mut self, to: &Path) -> io::Result<()> {
        let name = match &self.name {
            Some(name) => name,
            // No link replaces a file; a rename does.
            None => &*self.name.insert(unused(&self.folder, |name| link(&self.file, name))?.0),
        };
        fs::rename(name, to)?;
        self.name = None;
        Ok(())
    }

    fn link(&self, to: &Path) -> io::Result<()> {
        match &self.name {
            Some(name) => fs::hard_link(name, to),
            None => link(&self.file, to),
        }
    }
}

impl Drop for IncompleteFile {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // After a failure the earlier error is the one to report.
            let _ = fs::remove_file(name);
        }
    }
}

/// Gives a name to a file without one.
fn link(file: &File, to: &Path) -> io::Result<()> {
    let file = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let to = CString::new(to.as_os_str().as_bytes())?;
    // SAFETY: both are C strings that outlive the call.
    let linked = unsafe {
        libc::linkat(libc::AT_FDCWD, file.as_ptr(), libc::AT_FDCWD, to.as_ptr(), libc::AT_SYMLINK_FOLLOW)
    };
    if linked == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Calls `make` with names that no other program is likely to use, until one is free.
fn unused<T>(folder: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(PathBuf, T)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = folder.join(format!("{PREFIX}{}-{number}", std::process::id()));
        match make(&name) {
            Ok(made) => return Ok((name, made)),
            // An earlier process with this process's number has left it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// An incomplete file as on a file system that cannot have files without a name.
    fn named(folder: &Path) -> IncompleteFile {
        let mut file = IncompleteFile::inside(folder).unwrap();
        if file.name.is_none() {
            file.name = Some(unused(folder, |name| link(&file.file, name)).unwrap().0);
        }
        file
    }

    #[test]
    fn a_file_appears_under_its_name_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("out");
        let makers: [fn(&Path) -> IncompleteFile; 2] =
            [|folder| IncompleteFile::inside(folder).unwrap(), named];
        for (number, make) in makers.into_iter().enumerate() {
            fs::write(&place, "before").unwrap();
            drop(make(folder.path()));
            assert_eq!(names(folder.path()), ["out"]);
            let mut file = make(folder.path());
            write!(file.file, "after {number}").unwrap();
            assert_eq!(fs::read_to_string(&place).unwrap(), "before");
            assert!(file.persist(&folder.path().join("missing/out")).is_err());
            file.persist(&place).unwrap();
            drop(file);
            assert_eq!(fs::read_to_string(&place).unwrap(), format!("after {number}"));
            assert_eq!(names(folder.path()), ["out"]);
        }
    }

    #[test]
    fn a_file_with_two_names_has_one_copy() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().unwrap();
        let places = ["one", "two"].map(|name| folder.path().join(name));
        let makers: [fn(&Path) -> IncompleteFile; 2] =
            [|folder| IncompleteFile::inside(folder).unwrap(), named];
        for make in makers {
            let mut file = make(folder.path());
            let mut second = file.second().unwrap();
            file.persist(&places[0]).unwrap();
            second.persist(&places[1]).unwrap();
            drop((file, second));
            let [one, two] = places.each_ref().map(|place| fs::metadata(place).unwrap().ino());
            assert_eq!(one, two);
            assert_eq!(names(folder.path()), ["one", "two"]);
        }
    }
}
