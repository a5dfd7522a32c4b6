//! Runs of `otlpprof run`, and what they leave.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use tempfile::TempDir;

use crate::agent_support::agent;
use crate::agent_support::heeded_signals::heed_signals;

/// The classes of the test programs.
pub(crate) const CLASSES: &str = otlpprof_testkit::TEST_CLASSES;

/// A wait of this length is taken to last for ever. It ends before the runner of the tests ends the test.
const PATIENCE: Duration = Duration::from_secs(240);

/// A folder in which runs take place.
pub(crate) struct RunFolder {
    folder: TempDir,
}

impl RunFolder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file that may be executed.
    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        let (path, content) = (self.path(name), self.path("script"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&content, text).unwrap();
        install(&content, &path);
        path
    }

    /// `otlpprof run` with this build's agent, in this folder and in an environment that configures no JVM
    /// and no agent. Its temporary files are in the folder `tmp`. Nothing is read from standard input.
    pub(crate) fn run(&self) -> Command {
        let mut command = self.command(Path::new(env!("CARGO_BIN_EXE_otlpprof")));
        command.arg("--library").arg(agent());
        command
    }

    /// As [`RunFolder::run`], for another copy of the command, which looks for its agent itself.
    pub(crate) fn command(&self, otlpprof: &Path) -> Command {
        let mut command = Command::new(otlpprof);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("OTEL_") || text.starts_with("OTLPPROF_") || text.contains("JAVA_") {
                command.env_remove(&name);
            }
        }
        // Cargo's value, with which the JVM would find agents of other builds.
        command.env_remove("LD_LIBRARY_PATH");
        // Tests sample more often than the default budget and limit allow.
        command.env("OTLPPROF_BUDGET", "off").env("OTLPPROF_LIMIT", "off");
        command.env("TMPDIR", self.path("tmp")).current_dir(self.folder.path());
        command.stdin(Stdio::null()).arg("run");
        heed_signals(&mut command);
        command
    }

    /// The files of running JVMs that have content already.
    pub(crate) fn written(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(self.path("tmp")).unwrap().map(|folder| folder.unwrap().path());
        let files = folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
        let files = files.filter_map(|file| Some(file.ok()?.path()));
        files.filter(|file| fs::metadata(file).is_ok_and(|file| file.len() > 0)).collect()
    }

    /// Asserts that no temporary file is left.
    pub(crate) fn assert_clean(&self) {
        let left: Vec<_> = fs::read_dir(self.path("tmp")).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Copies a file that may be executed. Another process writes it: a file that this process has open for
/// writing cannot be executed, and other tests' children inherit open files for a moment.
pub(crate) fn install(from: &Path, to: &Path) {
    let status = Command::new("install").args(["-m", "755"]).args([from, to]).status().unwrap();
    assert!(status.success(), "{status}");
}

/// A run that has been started. It is killed when this value is dropped.
pub(crate) struct Started {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: PathBuf,
    ended: bool,
}

impl Started {
    /// Starts a command. Its standard error is in a file of the place.
    pub(crate) fn new(command: &mut Command, place: &RunFolder) -> Self {
        let stderr = place.path("stderr");
        command.stdout(Stdio::piped()).stderr(fs::File::create(&stderr).unwrap());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout, stderr, ended: false }
    }

    /// Reads lines of standard output until one begins with `begin`. Returns its end.
    pub(crate) fn line(&mut self, begin: &str) -> String {
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

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.stderr).unwrap()).into_owned()
    }

    /// Sends a signal to the command alone.
    pub(crate) fn signal(&self, signal: libc::c_int) {
        kill(self.child.id(), signal);
    }

    /// Waits for the end. Returns the exit code, the rest of standard output, and all of standard error.
    pub(crate) fn finish(mut self) -> (i32, String, String) {
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

/// Waits until a condition holds.
pub(crate) fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "no {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a signal to a process that has not been waited for.
pub(crate) fn kill(pid: u32, signal: libc::c_int) {
    // SAFETY: the call accesses no memory.
    assert_eq!(unsafe { libc::kill(pid.cast_signed(), signal) }, 0, "{}", std::io::Error::last_os_error());
}

/// Adds a test program and its arguments to a command.
pub(crate) fn java(command: &mut Command, java: &Path, program: &[&str]) {
    command.arg("--").arg(java).args(["-cp", CLASSES]).arg(format!("programs.{}", program[0]));
    command.args(&program[1..]);
}

/// The exit code, standard output and standard error.
pub(crate) fn parts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    (output.status.code().unwrap_or_else(|| panic!("{output:?}")), stdout, stderr)
}

/// The data of a page, decompressed.
pub(crate) fn page_data(page: &Path) -> String {
    let html = fs::read_to_string(page).unwrap();
    let data = html.split("id=\"profile\">").nth(1).unwrap().split('<').next().unwrap();
    let mut bytes = Vec::new();
    ZlibDecoder::new(&*STANDARD.decode(data).unwrap()).read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}
