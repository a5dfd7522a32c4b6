//! A file that is there when it is whole, and until then as it was before.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes a file by `body`: beside it, and then in its place, with the permissions that it has if it is there. What is no
/// file, a pipe or a device, is written itself.
///
/// # Errors
/// If the file cannot be made or `body` fails. A file is as it was before then.
pub(super) fn write(path: &Path, body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let before = fs::metadata(path).ok();
    // A link to the file stays one. What has no path any more, as `/dev/stdout` may be, is written itself.
    let place = match &before {
        Some(file) if file.is_file() => fs::canonicalize(path).ok(),
        Some(_) => None,
        None => Some(path.to_owned()),
    };
    let Some(place) = place else { return write_through(File::create(path)?, body) };
    let temporary = beside(&place)?;
    let file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
    let permissions = before.map_or(Ok(()), |file| fs::set_permissions(&temporary, file.permissions()));
    let written = permissions.and_then(|()| write_through(file, body));
    let written = written.and_then(|()| fs::rename(&temporary, &place));
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_through(file: File, body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    body(&mut file)?;
    file.flush()
}

/// A name in the same directory, of which nobody else thinks.
fn beside(place: &Path) -> io::Result<PathBuf> {
    let name = place.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.tmp", std::process::id()));
    Ok(place.with_file_name(temporary))
}
