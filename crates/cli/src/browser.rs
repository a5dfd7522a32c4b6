//! The browser, which goes on when the command has ended.

use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// The program that opens a file in the browser that the user prefers (freedesktop.org, xdg-utils).
const OPENER: &str = "xdg-open";

/// Opens a page. Waits neither for the browser nor for its start. `prepare` completes the command that starts
/// the browser.
pub(super) fn open(page: &Path, prepare: impl FnOnce(&mut Command)) -> anyhow::Result<()> {
    let name = || page.display().to_string();
    let mut command = Command::new(OPENER);
    command.arg(page.canonicalize().with_context(name)?);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // A Ctrl-C in the terminal is not for the browser.
    command.process_group(0);
    prepare(&mut command);
    match command.spawn() {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("--open: there is no {OPENER}; open {} in a browser", page.display())
        }
        Err(error) => Err(error).context(OPENER),
    }
}
