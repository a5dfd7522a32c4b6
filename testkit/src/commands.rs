//! Runs of the command `otlpprof` and of other programs, and their output.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::this_build;

/// The command `otlpprof` of this build.
pub fn otlpprof() -> Command {
    Command::new(this_build::command())
}

/// Runs the command with these arguments.
pub fn run_otlpprof(arguments: &[&str]) -> assert_cmd::assert::Assert {
    assert_cmd::Command::new(this_build::command()).args(arguments).assert()
}

/// Runs the command with these arguments. Returns its exit code, and what it wrote on standard output and
/// then on standard error.
#[track_caller]
pub fn printed_by_otlpprof(arguments: &[&str]) -> (i32, String) {
    let output = otlpprof().args(arguments).output().unwrap();
    let code = exit_code(&output);
    (code, String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

/// The standard output of the command, which must succeed without a line on standard error.
#[track_caller]
pub fn quiet_output(arguments: &[&str]) -> String {
    let output = run_otlpprof(arguments).success().get_output().clone();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The standard error of the command, which must fail with exit code 2 and without any output.
#[track_caller]
pub fn error_of(arguments: &[&str]) -> String {
    let output = run_otlpprof(arguments).code(2).get_output().clone();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Runs a program, which must succeed, with messages in English. Returns its standard output.
#[track_caller]
pub fn output_of(program: &str, arguments: &[&str]) -> String {
    String::from_utf8_lossy(&succeed(Command::new(program).args(arguments)).stdout).into_owned()
}

/// Runs a program to its successful end, with messages in English and without standard input.
///
/// # Panics
/// If the program cannot be started or fails.
#[track_caller]
pub fn succeed(command: &mut Command) -> Output {
    let output = command.env("LC_ALL", "C").stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The exit code of a program that no signal has ended.
#[track_caller]
pub fn exit_code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("{output:?}"))
}

/// The exit code, standard output and standard error.
#[track_caller]
pub fn parts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (exit_code(output), text(&output.stdout), text(&output.stderr))
}

/// Output as text.
#[track_caller]
pub fn text_of(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A path as an argument.
#[track_caller]
pub fn text(path: &Path) -> &str {
    path.to_str().expect("a path of a test is UTF-8")
}
