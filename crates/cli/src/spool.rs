//! Copies of inputs that can be read only once, such as pipes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};

/// The most bytes that are copied, enough for several of the largest messages.
const MOST_KEPT: u64 = 8 << 30;
const COPY_LEN: usize = 1 << 16;

/// Copies `from` to an unnamed temporary file, which is freed with its last descriptor. `path` is for error
/// messages.
pub(super) fn kept(mut from: impl Read, path: &Path) -> anyhow::Result<File> {
    let mut file = empty()?;
    let mut bytes = vec![0; COPY_LEN];
    let mut length = 0;
    loop {
        let count = match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        length += count as u64;
        if length > MOST_KEPT {
            bail!("{}: more than {MOST_KEPT} bytes", path.display());
        }
        file.write_all(&bytes[..count]).with_context(no_room)?;
    }
    Ok(file)
}

/// Creates an unnamed temporary file. A command whose input exists only once calls this function before it
/// begins, so that nothing is lost at its end.
pub(super) fn empty() -> anyhow::Result<File> {
    nameless(&std::env::temp_dir()).with_context(no_room)
}

fn no_room() -> String {
    format!("no temporary file in {}; set TMPDIR to another folder", std::env::temp_dir().display())
}

fn nameless(directory: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options.clone().custom_flags(libc::O_TMPFILE).open(directory).or_else(|_| {
        // Not all file systems support files without a name.
        let path = directory.join(format!(".otlpprof-kept.{}.tmp", std::process::id()));
        let file = options.create_new(true).open(&path)?;
        fs::remove_file(&path)?;
        Ok(file)
    })
}
