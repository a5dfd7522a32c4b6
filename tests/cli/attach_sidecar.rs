//! The command in a sidecar: a container that shares the JVM's PID namespace, and nothing of its files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use otlpprof_testkit::attach::Target;
use otlpprof_testkit::commands::{exit_code, text_of};
use otlpprof_testkit::java_run::containers::{self, VOLUME};
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::profiles;
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::this_build::agent;

/// Runs the command in a container of its own beside a JVM, of which it sees only the processes. Temporary
/// files belong into the folder `temporary`.
fn in_sidecar(
    beside: u32,
    home: &Path,
    folder: &Path,
    volume: &Path,
    temporary: &str,
    arguments: &[&str],
) -> Output {
    let roots = tempfile::tempdir_in(folder).unwrap();
    let mut command = Command::new("nsenter");
    command.args(["--user", "--pid", "--preserve-credentials", "--target", &beside.to_string()]);
    command.args(["unshare", "--mount"]);
    containers::add_root(&mut command, home, roots.path(), (volume, VOLUME));
    command.env("TMPDIR", temporary);
    command.arg(env!("CARGO_BIN_EXE_otlpprof")).args(arguments).output().unwrap()
}

#[test]
fn a_sidecar_commands_the_jvm_of_another_container() {
    if !containers::are_permitted() {
        return not_tested("attaching from a sidecar: unshare is not permitted");
    }
    for home in newest_or_all() {
        let folder = tempfile::tempdir().unwrap();
        let [tmp, volume] = ["tmp", "volume"].map(|name| folder.path().join(name));
        fs::create_dir(&tmp).unwrap();
        fs::create_dir(&volume).unwrap();
        fs::copy(agent(), volume.join("libotlpprof.so")).unwrap();
        let mut java = containers::namespaces();
        containers::add_root(&mut java, &home, folder.path(), (&tmp, "/tmp"));
        java.arg(home.join("bin/java").canonicalize().unwrap());
        java.args(["-cp", otlpprof_testkit::products::TEST_CLASSES, "programs.UserLoop", "600"]);
        let jvm = Target::start(&mut java);
        let beside = jvm.jvm_in_namespaces();
        // The JVM is the first process of its namespace.
        let run = |arguments: &[&str]| {
            let output = in_sidecar(beside, &home, folder.path(), &volume, VOLUME, arguments);
            assert_eq!(exit_code(&output), 0, "{arguments:?}: {}", text_of(&output.stderr));
            text_of(&output.stdout).to_owned()
        };
        let listed = run(&["list"]);
        let is_it = |line: &str| line.split_whitespace().next() == Some("1") && line.contains("UserLoop");
        assert!(listed.lines().any(is_it), "{listed}");
        let library = &format!("{VOLUME}/libotlpprof.so")[..];
        run(&["attach", "1", "--library", library, "interval=1h,file=/tmp/x.otlp"]);
        assert!(run(&["status", "1"]).contains("/tmp/x.otlp"));
        assert!(run(&["stop", "1"]).starts_with("stopped\n"));
        assert!(tmp.join("x.otlp").is_file(), "the JVM's own file");
        let out = &format!("{VOLUME}/out.otlp")[..];
        let record = |temporary: &str| {
            let record = ["record", "1", "cpu=1ms", "-d", "1s", "-o", out];
            in_sidecar(beside, &home, folder.path(), &volume, temporary, &record)
        };
        // Regression: a recording was lost at its end where the command has no folder for temporary files.
        let refused = record("/tmp");
        assert!(text_of(&refused.stderr).contains("in /tmp; set TMPDIR to another folder"), "{refused:?}");
        assert!(!run(&["status", "1"]).contains("samples"), "a session is left");
        // A recording may be so short that it has no sample.
        let recorded = (0..20).any(|_| {
            let output = record(VOLUME);
            let printed = text_of(&output.stderr);
            assert!(output.status.success() || printed.contains("no sample was taken"), "{printed}");
            output.status.success()
        });
        assert!(recorded, "{}: no sample", home.display());
        profiles::assert_valid("a JVM beside a sidecar", &volume.join("out.otlp"));
    }
}
