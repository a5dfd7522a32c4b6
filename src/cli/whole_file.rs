//! Files that are replaced as a whole: until the new content is complete, the file stays as it was.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use nix::unistd::{AccessFlags, access};

/// Writes a file by `body`: first a temporary file in the same directory, which then replaces the file and
/// has its permissions. A pipe or a device is written directly.
///
/// # Errors
/// The file cannot be created or `body` fails. An existing file is then unchanged.
pub(super) fn write(path: &Path, body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let before = fs::metadata(path).ok();
    // A link to the file stays a link. A file that no longer has a path, such as `/dev/stdout` may be, is
    // written directly.
    let place = match &before {
        Some(file) if file.is_file() => fs::canonicalize(path).ok(),
        Some(_) => None,
        None => Some(path.to_owned()),
    };
    let Some(place) = place else { return write_through(File::create(path)?, body) };
    let temporary = Temporary::beside(&place)?;
    if let Some(before) = before {
        temporary.file.set_permissions(before.permissions())?;
    }
    write_through(&temporary.file, body)?;
    temporary.name()?;
    fs::rename(&temporary.path, &place)
}

/// Writes a file by `body` as [`write`] does, or standard output if the path is `-`. Errors name the file.
pub(super) fn write_or_print(
    path: &Path,
    body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    if path == Path::new("-") {
        let mut out = io::stdout().lock();
        return Ok(body(&mut out).and_then(|()| out.flush())?);
    }
    write(path, body).with_context(|| path.display().to_string())
}

/// Fails if [`write`] could not replace the file: for commands that measure for long before they write.
///
/// # Errors
/// They name the file.
pub(super) fn check_writable(file: &Path) -> anyhow::Result<()> {
    let checked = || {
        if file.is_dir() {
            bail!("a folder; name a file");
        }
        let folder = folder_of(file);
        if !folder.is_dir() {
            bail!("the folder {} does not exist; create it", folder.display());
        }
        // A file is replaced by another one in its folder. A device is written to.
        let (written, needed) = match fs::metadata(file) {
            Ok(place) if !place.is_file() => (file, AccessFlags::W_OK),
            _ => (folder, AccessFlags::W_OK | AccessFlags::X_OK),
        };
        access(written, needed).with_context(|| written.display().to_string())
    };
    checked().with_context(|| file.display().to_string())
}

/// The folder that a file is in.
fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether both paths denote the same regular file, so that writing to one would change the other. Never true
/// for a terminal or a pipe.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    let identity =
        |path| fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|file| (file.dev(), file.ino()));
    identity(one).is_some_and(|of_one| identity(other) == Some(of_one))
}

/// A file that is removed unless it is renamed.
struct Temporary {
    file: File,
    path: PathBuf,
    /// Whether the file had a name from the start, as on file systems without unnamed files. A signal may
    /// then leave it behind.
    is_named: bool,
}

impl Temporary {
    /// Creates a temporary file in the directory of `place`.
    fn beside(place: &Path) -> io::Result<Self> {
        let path = beside(place)?;
        let directory = folder_of(&path);
        let mut options = OpenOptions::new();
        options.write(true);
        let nameless = options.clone().custom_flags(libc::O_TMPFILE).open(directory);
        match nameless {
            Ok(file) => Ok(Self { file, path, is_named: false }),
            Err(_) => Ok(Self { file: options.create_new(true).open(&path)?, path, is_named: true }),
        }
    }

    /// Links the file to its name, if it has none yet.
    fn name(&self) -> io::Result<()> {
        if self.is_named {
            return Ok(());
        }
        let file = CString::new(format!("/proc/self/fd/{}", self.file.as_raw_fd()))?;
        let path = CString::new(self.path.as_os_str().as_bytes())?;
        // SAFETY: both are C strings that outlive the call.
        let linked = unsafe {
            libc::linkat(
                libc::AT_FDCWD,
                file.as_ptr(),
                libc::AT_FDCWD,
                path.as_ptr(),
                libc::AT_SYMLINK_FOLLOW,
            )
        };
        if linked == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename no file has this name. After a failure the earlier error is the one to report.
        let _ = fs::remove_file(&self.path);
    }
}

fn write_through(file: impl Write, body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    body(&mut file)?;
    file.flush()
}

/// A name in the same directory that no other program is likely to use.
fn beside(place: &Path) -> io::Result<PathBuf> {
    let name = place.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.tmp", std::process::id()));
    Ok(place.with_file_name(temporary))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Regression: a command that was ended by a signal while it wrote left a file of another name.
    #[test]
    fn no_file_of_another_name_exists_while_a_result_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        for text in ["first", "second"] {
            let before = names(directory.path());
            let body = |to: &mut dyn Write| {
                to.write_all(text.as_bytes())?;
                to.flush()?;
                assert_eq!(names(directory.path()), before);
                Ok(())
            };
            write(&path, body).unwrap();
            assert_eq!(
                (names(directory.path()), fs::read_to_string(&path).unwrap()),
                (vec!["out".into()], text.into())
            );
        }
        let failed = write(&path, |to| {
            to.write_all(b"third")?;
            Err(io::Error::other("failed"))
        });
        assert!(failed.is_err());
        assert_eq!(
            (names(directory.path()), fs::read_to_string(&path).unwrap()),
            (vec!["out".into()], "second".into())
        );
    }

    #[test]
    fn a_file_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        write(&path, |to| to.write_all(b"after")).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
