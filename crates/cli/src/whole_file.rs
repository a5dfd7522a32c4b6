//! Files that are replaced as a whole: until the new content is complete, the file stays as it was.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context as _, bail};
use nix::unistd::{AccessFlags, access};

use otlpprof_incomplete_file::IncompleteFile;

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
    let mut incomplete = IncompleteFile::inside(folder_of(&place))?;
    if let Some(before) = before {
        incomplete.file.set_permissions(before.permissions())?;
    }
    write_through(&incomplete.file, body)?;
    incomplete.persist(&place)
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

/// Fails if the output is one of the inputs, which it would replace.
///
/// # Errors
/// It names the file.
pub(super) fn check_is_no_input<P: AsRef<Path>>(output: &Path, inputs: &[P]) -> anyhow::Result<()> {
    if inputs.iter().any(|input| is_same(input.as_ref(), output)) {
        bail!("{} is one of the inputs: write to another file", output.display());
    }
    Ok(())
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

fn write_through(file: impl Write, body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    body(&mut file)?;
    file.flush()
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
