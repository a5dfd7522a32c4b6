//! Programs that tests compare with, as scripts/install-toolchain.sh and other scripts install them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::commands::text_of;
use crate::skipped::not_tested;
use crate::this_build;

/// The Go command. `None` if there is none, which is reported with this text.
pub fn go(what: &str) -> Option<PathBuf> {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let installed = this_build::project().join(".cache/go/bin");
    let folders = std::env::split_paths(&on_path).chain(["/usr/local/go/bin".into(), installed]);
    let found = folders.map(|folder| folder.join("go")).find(|go| go.is_file());
    if found.is_none() {
        not_tested(&format!("{what}, for want of Go (scripts/install-toolchain.sh go)"));
    }
    found
}

/// The folder of Debian's libraries with their debug files, which scripts/debug-objects.sh fetches. `None` if
/// they cannot be fetched, which is reported.
pub fn debug_objects() -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let fetch = || {
        let output = Command::new(this_build::project().join("scripts/debug-objects.sh")).output().unwrap();
        if !output.status.success() {
            not_tested(&format!("libraries of Debian: {}", String::from_utf8_lossy(&output.stderr).trim()));
            return None;
        }
        Some(PathBuf::from(text_of(&output.stdout).trim()))
    };
    FOUND.get_or_init(fetch).clone()
}

/// Runs a command of a script that installs what it needs. `None` if that cannot be installed, which is
/// reported with this text.
///
/// # Panics
/// If the command cannot be started.
#[track_caller]
pub fn output_unless_missing(command: &mut Command, what: &str) -> Option<std::process::Output> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let error = String::from_utf8_lossy(&output.stderr);
    if error.contains("cannot be installed") {
        not_tested(&format!("{what}: {error}"));
        return None;
    }
    Some(output)
}

/// A command of scripts/python-oracle.sh.
pub fn python_oracle() -> Command {
    Command::new(this_build::project().join("scripts/python-oracle.sh"))
}

/// A command of scripts/page.sh, which runs this script of the project.
pub fn page_script(kind: &str, script: impl AsRef<Path>) -> Command {
    let mut command = Command::new(this_build::project().join("scripts/page.sh"));
    command.arg(kind).arg(this_build::project().join(script));
    command
}
