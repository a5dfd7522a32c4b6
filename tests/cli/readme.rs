//! The commands of README.md, run as a reader would run them, in an empty folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use otlpprof_testkit::attach::Target;
use otlpprof_testkit::commands::text_of;
use otlpprof_testkit::jdk::java_homes;
use otlpprof_testkit::processes::caught;
use otlpprof_testkit::run_folder::install;
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::this_build::{self, agent};
use otlpprof_testkit::waiting::wait_for;

const README: &str = include_str!("../../README.md");

/// The commands that install tools and build. `scripts/demo.sh` does the same.
const BUILD: [&str; 3] = [
    "scripts/install-toolchain.sh rust cc jdk",
    ". ~/.cargo/env && cargo build --release",
    "export PATH=$PWD/target/release:$PATH",
];

/// The indented lines, which are commands.
fn commands() -> Vec<&'static str> {
    README.lines().filter_map(|line| line.strip_prefix("    ")).filter(|line| !is_code(line)).collect()
}

/// Whether a line is a part of the program or of its table, which are between fences.
fn is_code(line: &str) -> bool {
    fenced("java").contains(line) || fenced("text").contains(line)
}

/// The text between fences of this language.
fn fenced(language: &str) -> &'static str {
    let begin = format!("```{language}\n");
    let from = README.find(&begin).unwrap_or_else(|| panic!("no {begin}")) + begin.len();
    let length = README[from..].find("```").unwrap();
    &README[from..from + length]
}

/// A folder with the command, its agent, the program, and a launcher in PATH.
struct Reader {
    folder: tempfile::TempDir,
    /// The name of the program's class. No other JVM of this machine, such as another test's, has it.
    class: String,
    path: std::ffi::OsString,
}

impl Reader {
    fn new(home: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("target/release");
        fs::create_dir_all(&bin).unwrap();
        install(this_build::command(), &bin.join("otlpprof"));
        install(&agent(), &bin.join("libotlpprof.so"));
        let others = std::env::var_os("PATH").unwrap();
        let folders = [bin, home.join("bin")].into_iter().chain(std::env::split_paths(&others));
        let path = std::env::join_paths(folders).unwrap();
        static READERS: AtomicU32 = AtomicU32::new(0);
        let number = READERS.fetch_add(1, Ordering::Relaxed);
        let class = format!("Shop{}x{number}", std::process::id());
        let reader = Self { folder, class, path };
        let program = fenced("java").replace("Shop", &reader.class);
        let shorter = program.replace("15_000_000_000L", "Long.getLong(\"seconds\", 1) * 1_000_000_000L");
        assert_ne!(program, shorter);
        fs::write(reader.folder.path().join(format!("{}.java", reader.class)), shorter).unwrap();
        reader
    }

    /// A command in the folder.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("OTEL_") || text.starts_with("OTLPPROF_") || text.contains("JAVA_") {
                command.env_remove(&name);
            }
        }
        // Cargo's value, with which the JVM would find agents of other builds.
        command.env_remove("LD_LIBRARY_PATH").env("PATH", &self.path).current_dir(self.folder.path());
        command.stdin(Stdio::null());
        command
    }

    /// Runs a line of the shell, and expects success.
    fn run(&self, line: &str) -> Output {
        let output = self.command("/bin/sh").args(["-c", line]).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        output
    }

    /// The line as it is run here: with another name of the class, another program for the reader's own, less
    /// time, and output that needs no terminal.
    fn as_run(&self, line: &str) -> String {
        let line = line.replace("-jar app.jar", "Shop.java").replace("Shop", &self.class);
        let folder = format!("{}/", self.folder.path().display());
        let line = line.replace("-d 30", "-d 1").replace("/tmp/", &folder);
        if line.starts_with("otlpprof top ") { format!("{line} --count 1") } else { line }
    }
}

/// A JDK that runs a program by its source.
fn home() -> Option<PathBuf> {
    let home = java_homes().into_iter().rev().find(|home| home.join("bin/javac").is_file());
    if home.is_none() {
        not_tested("commands of the README: no JDK with a compiler");
    }
    home
}

/// The commands on a running JVM, and all others but those of [`BUILD`].
fn parts() -> (Vec<&'static str>, Vec<&'static str>) {
    let all = commands();
    assert_eq!(all.iter().filter(|line| BUILD.contains(line)).count(), BUILD.len(), "{all:?}");
    let is_of_running = |line: &&str| {
        let name = line.strip_prefix("otlpprof ").and_then(|words| words.split(' ').next());
        matches!(name, Some("list" | "record" | "top" | "attach" | "stop"))
    };
    let (of_running, others): (Vec<_>, Vec<_>) =
        all.into_iter().filter(|line| !BUILD.contains(line)).partition(is_of_running);
    assert_eq!((of_running.len(), others.len()), (5, 4), "{of_running:?} {others:?}");
    (of_running, others)
}

/// Each command succeeds, and prints what README says of it.
#[test]
fn commands_of_the_readme_that_start_programs_run() {
    let Some(home) = home() else { return };
    let (_, others) = parts();
    let reader = Reader::new(&home);
    let folder = reader.folder.path();
    let mut kept = "";
    for line in others {
        let run = reader.as_run(line);
        if line.starts_with("otlpprof report ") {
            // A run of so short a time may lack samples of the function.
            wait_for(&format!("callers by {line}"), || {
                text_of(&reader.run(&run).stdout).contains("called by ") || {
                    reader.run(&reader.as_run(kept));
                    false
                }
            });
            continue;
        }
        let output = reader.run(&run);
        let stderr = text_of(&output.stderr);
        if line.starts_with("otlpprof run ") {
            assert!(stderr.contains("cpu of java: ") && stderr.contains("\nprocess "), "{line}: {stderr}");
            assert!(stderr.contains("otlpprof.html written: open it in a browser\n"), "{line}: {stderr}");
            assert!(folder.join("otlpprof.html").is_file(), "{line}");
            kept = line;
        } else {
            // No collector listens.
            assert!(stderr.contains("[otlpprof] "), "{line}: {stderr}");
        }
    }
}

#[test]
fn commands_of_the_readme_on_a_running_jvm_run() {
    let Some(home) = home() else { return };
    let (of_running, _) = parts();
    let reader = Reader::new(&home);
    let folder = reader.folder.path();
    let mut java = reader.command("java");
    java.arg("-Dseconds=600").arg(format!("{}.java", reader.class));
    let jvm = Target::start(&mut java);
    wait_for("the JVM", || caught(jvm.pid(), libc::SIGQUIT));
    for line in of_running {
        let expected = match line.split(' ').nth(1).unwrap() {
            "list" => format!("{:>8}", jvm.pid()),
            "record" => "cpu of java: ".to_owned(),
            "top" => "your code ".to_owned(),
            "attach" => "started\n".to_owned(),
            _ => "stopped\n".to_owned(),
        };
        // A view of so short a time may lack samples.
        wait_for(&format!("'{expected}' of {line}"), || {
            text_of(&reader.run(&reader.as_run(line)).stdout).contains(&expected)
        });
    }
    assert!(folder.join(format!("{}.otlp", jvm.pid())).is_file());
}
