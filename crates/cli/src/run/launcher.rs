//! The way in which the agent is loaded into a program: by an argument of `java`, or by a variable that every
//! HotSpot JVM reads.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::bail;

use super::tool_options;
use crate::executable;

/// The name of the JDK's launcher.
const LAUNCHER: &str = "java";
/// The variable with options of all JVMs (JVMTI, "The JAVA_TOOL_OPTIONS Environment Variable").
const TOOL_OPTIONS: &str = "JAVA_TOOL_OPTIONS";
/// The first bytes of an ELF file.
const ELF_MAGIC: &[u8; 4] = b"\x7fELF";

/// The way in which a program gets the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loading {
    /// As the first argument of the JDK's launcher, which prints nothing.
    Argument,
    /// By the variable, for a script that starts a JVM, or a build tool. Each JVM that reads the variable
    /// prints a line.
    Variable,
}

impl Loading {
    /// The way for a program, as it is called.
    pub(super) fn of(program: &OsStr) -> Self {
        match is_launcher(program, env::var_os("PATH").as_deref()) {
            true => Self::Argument,
            false => Self::Variable,
        }
    }
}

/// The command of a program and its arguments, with the agent.
///
/// # Errors
/// The JVM could not load a library with this path.
pub(super) fn command(
    program: &OsStr,
    arguments: &[OsString],
    loading: Loading,
    library: &Path,
    options: &str,
) -> anyhow::Result<Command> {
    // The JVM takes the path up to the first equals sign (HotSpot, Arguments::parse_each_vm_init_arg).
    if library.as_os_str().as_bytes().contains(&b'=') {
        bail!("{}: the JVM cannot load a library whose path has an equals sign; move it", library.display());
    }
    let mut agent = OsString::from("-agentpath:");
    agent.push(library);
    agent.push("=");
    agent.push(options);
    let mut command = Command::new(program);
    match loading {
        Loading::Argument => command.arg(agent),
        Loading::Variable => {
            let before = env::var_os(TOOL_OPTIONS).unwrap_or_default();
            command.env(TOOL_OPTIONS, tool_options::with_option(&before, &agent))
        }
    };
    command.args(arguments);
    Ok(command)
}

/// Whether the program is the JDK's launcher: it is called `java`, and is an ELF file. A script of that name
/// (a version manager's) may do anything with its arguments, but the JVM that it starts reads the variable.
fn is_launcher(program: &OsStr, path: Option<&OsStr>) -> bool {
    Path::new(program).file_name() == Some(LAUNCHER.as_ref())
        && executable::find(program, path).is_some_and(|file| is_elf(&file))
}

fn is_elf(file: &Path) -> bool {
    let mut first = [0; ELF_MAGIC.len()];
    File::open(file).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first == *ELF_MAGIC
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_launcher_is_an_elf_file_called_java() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str, content: &[u8], mode: u32| {
            let file = folder.path().join(name).join("java");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, content).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            file
        };
        let elf = place("elf", b"\x7fELF\x02", 0o755);
        let script = place("script", b"#!/bin/sh\nexec java \"$@\"\n", 0o755);
        place("not executable", b"\x7fELF\x02", 0o644);
        place("short", b"\x7f", 0o755);
        let renamed = folder.path().join("java17");
        symlink(&elf, &renamed).unwrap();
        let path = |names: &[&str]| env::join_paths(names.iter().map(|name| folder.path().join(name)));
        let found = |names: &[&str]| is_launcher("java".as_ref(), Some(&path(names).unwrap()));
        assert!(is_launcher(elf.as_os_str(), None));
        assert!(!is_launcher(script.as_os_str(), None));
        assert!(!is_launcher(renamed.as_os_str(), None));
        assert!(!is_launcher("/no/such/java".as_ref(), None));
        assert!(found(&["none", "not executable", "elf", "script"]));
        assert!(!found(&["script", "elf"]));
        assert!(!found(&["short"]));
        assert!(!found(&["none"]));
    }
}
