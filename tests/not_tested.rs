//! Tests that cannot run on a machine are reported visibly, and fail in CI.

use std::process::{Command, Output};

/// Runs one of the ignored tests below in its own process, with its output captured as usual.
fn run(test: &str, ci: Option<&str>) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", test]).env_remove("CI");
    command.envs(ci.map(|value| ("CI", value))).output().unwrap()
}

/// Regression: the report was written by eprintln!, which libtest suppresses in a test that passes.
#[test]
fn a_skipped_test_is_reported_although_it_passes() {
    let output = run("child_cannot_run_here", None);
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains("*** NOT TESTED: flying, for want of wings ***"), "{output:?}");
}

#[test]
fn a_skipped_test_fails_in_ci() {
    assert!(!run("child_cannot_run_here", Some("true")).status.success());
}

#[test]
#[ignore = "run by its parents"]
fn child_cannot_run_here() {
    otlpprof_testkit::skipped::not_tested("flying, for want of wings");
}

/// Regression: a list of JDKs disabled the check, in CI too.
#[test]
fn a_list_that_lacks_a_version_fails_in_ci() {
    let folder = tempfile::tempdir().unwrap();
    let server = folder.path().join("lib/server");
    std::fs::create_dir_all(&server).unwrap();
    std::fs::write(server.join("libjvm.so"), "").unwrap();
    std::fs::write(folder.path().join("release"), "JAVA_VERSION=\"17.0.9\"\n").unwrap();
    let listed = |ci: Option<&str>| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "child_lists_enough_jdks"]).env_remove("CI");
        command.env("OTLPPROF_TEST_JDKS", folder.path()).envs(ci.map(|value| ("CI", value)));
        command.output().unwrap()
    };
    let output = listed(None);
    assert!(output.status.success(), "{output:?}");
    let output = listed(Some("true"));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && printed.contains("no Java [11, 21, 25"), "{output:?}");
}

#[test]
#[ignore = "run by its parent"]
fn child_lists_enough_jdks() {
    assert_eq!(otlpprof_testkit::jdk::java_builds().len(), 1);
}

/// Regression: in CI the check passed with any single JDK.
#[test]
fn every_java_version_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    let home = |name: &str, version: &str| {
        let home = folder.path().join(name);
        std::fs::create_dir(&home).unwrap();
        std::fs::write(home.join("release"), format!("JAVA_VERSION=\"{version}\"\n")).unwrap();
        home
    };
    let mut homes = vec![home("a", "17.0.9"), home("b", "25"), home("c", "27-ea")];
    // The short form does without Debian unstable's JDKs.
    let later: &[u32] = if otlpprof_testkit::jdk::everything() { &[26] } else { &[] };
    assert_eq!(otlpprof_testkit::jdk::missing_versions(&homes), [&[11, 21], later].concat());
    homes.extend([home("d", "11.0.13"), home("e", "21.0.8"), home("f", "26.0.1")]);
    assert_eq!(otlpprof_testkit::jdk::missing_versions(&homes), [] as [u32; 0]);
}
