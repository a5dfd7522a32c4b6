//! The Java compiler: a program of many classes, most of which runs before it is compiled.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use otlpprof_testkit::commands::otlpprof;
use otlpprof_testkit::jdk::{everything, java_homes};
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::this_build::agent;

/// The sources that are compiled, which need no other class than the JDK's.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/java/api/io/otlpprof");

fn sources() -> Vec<PathBuf> {
    let files = fs::read_dir(SOURCES).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "java")).collect()
}

fn assert_javac_is_walked(home: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("profile.otlp");
    let loaded = format!("-J-agentpath:{}=cpu=1ms,file={}", agent().display(), profile.display());
    let compiled = Command::new(home.join("bin/javac"))
        .arg(loaded)
        .args(["-proc:none", "-d"])
        .arg(folder.path())
        .args(sources())
        .env("OTLPPROF_BUDGET", "off")
        .env("OTLPPROF_LIMIT", "off")
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}: {compiled:?}", home.display());
    let checked = otlpprof()
        .args(["check-stacks", "--known-roots", "--at-least", "99.5"])
        .arg(&profile)
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&checked.stdout);
    println!("{}: {report}", home.display());
    assert!(checked.status.success(), "{}: {report}", home.display());
    let is_root = |line: &str| line.ends_with("com.sun.tools.javac.Main.main");
    assert!(report.lines().any(is_root), "{}: {report}", home.display());
}

#[test]
fn stacks_of_javac_reach_their_roots() {
    let mut homes = java_homes();
    homes.retain(|home| home.join("bin/javac").is_file());
    if homes.is_empty() {
        not_tested("the Java compiler, since no JDK here has one");
    }
    if std::env::var_os("OTLPPROF_TEST_JDKS").is_none() && !everything() {
        homes.drain(..homes.len().saturating_sub(1));
    }
    homes.iter().for_each(|home| assert_javac_is_walked(home));
}
