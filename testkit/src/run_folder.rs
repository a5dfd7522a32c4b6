//! Runs of `otlpprof run`, and what they leave.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use tempfile::TempDir;

use crate::environment::remove_configuration;
use crate::heeded_signals::heed_signals;
use crate::processes::kill;
use crate::this_build;

/// The classes of the test programs.
pub const CLASSES: &str = otlpprof_testkit_products::TEST_CLASSES;

/// A folder in which runs take place.
pub struct RunFolder {
    folder: TempDir,
}

impl RunFolder {
    /// Creates the folder, which is removed with this value.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        Self { folder }
    }

    /// The path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file that may be executed.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let (path, content) = (self.path(name), self.path("script"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&content, text).unwrap();
        install(&content, &path);
        path
    }

    /// `otlpprof run` with this build's agent, in this folder and in an environment that configures no JVM
    /// and no agent. Its temporary files are in the folder `tmp`. Nothing is read from standard input.
    pub fn run(&self) -> Command {
        let mut command = self.command(this_build::command());
        command.arg("--library").arg(this_build::agent());
        command
    }

    /// As [`RunFolder::run`], for another copy of the command, which looks for its agent itself.
    pub fn command(&self, otlpprof: &Path) -> Command {
        let mut command = Command::new(otlpprof);
        remove_configuration(&mut command);
        command.env("TMPDIR", self.path("tmp")).current_dir(self.folder.path());
        command.stdin(Stdio::null()).arg("run");
        heed_signals(&mut command);
        command
    }

    /// The files of running JVMs that have content already.
    pub fn written(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(self.path("tmp")).unwrap().map(|folder| folder.unwrap().path());
        let files = folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
        let files = files.filter_map(|file| Some(file.ok()?.path()));
        files.filter(|file| fs::metadata(file).is_ok_and(|file| file.len() > 0)).collect()
    }

    /// Asserts that no temporary file is left.
    #[track_caller]
    pub fn assert_clean(&self) {
        let left: Vec<_> = fs::read_dir(self.path("tmp")).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Copies a file that may be executed. Another process writes it: a file that this process has open for
/// writing cannot be executed, and other tests' children inherit open files for a moment.
#[track_caller]
pub fn install(from: &Path, to: &Path) {
    let status = Command::new("install").args(["-m", "755"]).args([from, to]).status().unwrap();
    assert!(status.success(), "{status}");
}

/// A run that has been started. It is killed when this value is dropped.
pub struct Started {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: PathBuf,
    ended: bool,
}

impl Started {
    /// Starts a command. Its standard error is in a file of the place.
    pub fn new(command: &mut Command, place: &RunFolder) -> Self {
        let stderr = place.path("stderr");
        command.stdout(Stdio::piped()).stderr(fs::File::create(&stderr).unwrap());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout, stderr, ended: false }
    }

    /// Reads lines of standard output until one begins with `begin`. Returns its end.
    #[track_caller]
    pub fn line(&mut self, begin: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            let count = self.stdout.read_line(&mut line).unwrap();
            assert!(count > 0, "no line '{begin}'\n{}", self.stderr());
            if let Some(end) = line.strip_prefix(begin) {
                return end.trim().to_owned();
            }
        }
    }

    /// The standard error so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.stderr).unwrap()).into_owned()
    }

    /// Sends a signal only to the command.
    #[track_caller]
    pub fn signal(&self, signal: libc::c_int) {
        kill(self.child.id(), signal);
    }

    /// Waits for the end. Returns the exit code, the rest of standard output, and all of standard error.
    #[track_caller]
    pub fn finish(mut self) -> (i32, String, String) {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        let status = self.child.wait().unwrap();
        self.ended = true;
        let stderr = self.stderr();
        (status.code().unwrap_or_else(|| panic!("{status}\n{stderr}")), rest, stderr)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if !self.ended {
            // The command passes this on to its program.
            self.signal(libc::SIGTERM);
            let _ = self.child.wait();
        }
    }
}

/// Adds a test program and its arguments to a command.
pub fn java(command: &mut Command, java: &Path, program: &[&str]) {
    command.arg("--").arg(java).args(["-cp", CLASSES]).arg(format!("programs.{}", program[0]));
    command.args(&program[1..]);
}
