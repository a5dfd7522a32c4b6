//! The JVMs that tests run on.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::skipped::not_tested;
use crate::this_build;
use otlpprof_jvm::layout::Release;

/// One home of each version, in the order of the versions; a full JDK if there is one. If OTLPPROF_TEST_JDKS
/// lists homes or [`everything`] is true, all homes of [`java_builds`].
///
/// # Panics
/// If [`java_builds`] panics.
pub fn java_homes() -> Vec<PathBuf> {
    let mut homes = java_builds();
    if std::env::var_os("OTLPPROF_TEST_JDKS").is_none() && !everything() {
        // The sort is stable: of equal homes the first one by path remains.
        homes.sort_by_key(|home| (java_version(home), !home.join("bin/javac").is_file()));
        homes.dedup_by_key(|home| java_version(home));
    }
    homes
}

/// Whether tests run all combinations of JDKs with programs, walkers and options, on all builds of each
/// version: true if OTLPPROF_TEST_EVERYTHING is set.
pub fn everything() -> bool {
    std::env::var_os("OTLPPROF_TEST_EVERYTHING").is_some()
}

/// The newest of [`java_homes`], for behaviour that hardly depends on the version; all of them if
/// [`everything`] is true.
pub fn newest_or_all() -> Vec<PathBuf> {
    newest_of(java_homes())
}

/// The last of these homes, which are in the order of the versions; all of them if [`everything`] is true.
pub fn newest_of(mut homes: Vec<PathBuf>) -> Vec<PathBuf> {
    if !everything() {
        homes.drain(..homes.len().saturating_sub(1));
    }
    homes
}

/// The newest of [`java_homes`] that starts with these flags; all that do if [`everything`] is true.
///
/// # Panics
/// If no JVM starts with them, although no version is missing.
pub fn newest_that_start_with(flags: &[&str]) -> Vec<PathBuf> {
    let homes = java_homes();
    let is_whole = missing_versions(&homes).is_empty();
    let starting: Vec<_> = homes.into_iter().filter(|home| starts_with(home, flags)).collect();
    assert!(!starting.is_empty() || !is_whole, "no JDK starts with {flags:?}");
    newest_of(starting)
}

/// The newest of [`java_homes`] from a version on; all of them if [`everything`] is true.
pub fn java_homes_from(first: u32) -> Vec<PathBuf> {
    let mut homes = java_homes();
    homes.retain(|home| java_version(home) >= first);
    newest_of(homes)
}

/// The homes of all JDKs and runtimes to test on: the ones that OTLPPROF_TEST_JDKS lists; otherwise the ones
/// that scripts/install-jdks.sh has installed; otherwise the system's. Builds of one version differ in
/// vendor, compiler, build-id and modules.
///
/// # Panics
/// If a version is missing and `CI` is set, with or without a list. Without `CI` the missing versions are
/// reported, unless a list omits them.
#[track_caller]
pub fn java_builds() -> Vec<PathBuf> {
    if let Some(listed) = std::env::var_os("OTLPPROF_TEST_JDKS") {
        let homes: Vec<_> = std::env::split_paths(&listed).collect();
        for home in &homes {
            assert!(libjvm(home).is_file(), "OTLPPROF_TEST_JDKS: {} has no libjvm.so", home.display());
        }
        let missing = missing_versions(&homes);
        assert!(
            missing.is_empty() || std::env::var_os("CI").is_none(),
            "OTLPPROF_TEST_JDKS has no Java {missing:?}, and CI is set"
        );
        return homes;
    }
    let homes = installed_homes();
    let missing = missing_versions(&homes);
    if !missing.is_empty() {
        not_tested(&format!("no Java {missing:?}; scripts/install-jdks.sh gets what is missing"));
    }
    homes
}

/// The homes that scripts/install-jdks.sh has installed, and the system's.
pub fn installed_homes() -> Vec<PathBuf> {
    let cache = this_build::project().join(".cache/jdks");
    let mut homes = homes_in(&cache);
    homes.extend(homes_in(Path::new("/usr/lib/jvm")));
    homes.sort();
    homes.dedup();
    homes
}

/// The newest release that the short form of the tests needs. Later ones come from Debian unstable
/// (`scripts/install-jdks.sh --debian`), which changes daily.
const NEWEST_OF_SHORT_FORM: u32 = 25;

/// The known releases of which no home has a JDK. The short form does without those that it does not need.
pub fn missing_versions(homes: &[PathBuf]) -> Vec<u32> {
    let found: Vec<_> = homes.iter().map(|home| java_version(home)).collect();
    let newest = if everything() { u32::MAX } else { NEWEST_OF_SHORT_FORM };
    let wanted = Release::KNOWN.map(Release::feature).into_iter();
    wanted.filter(|version| *version <= newest && !found.contains(version)).collect()
}

/// The program that runs another program with the C library that a home of scripts/install-debian-jdks.sh
/// needs. `None` for other homes, which use the system's.
pub fn with_its_c_library(home: &Path) -> Option<PathBuf> {
    // The home is usr/lib/jvm/NAME in the root that has the program.
    let run = home.ancestors().nth(4)?.join("run");
    run.is_file().then_some(run)
}

/// The homes of [`java_homes`] whose JVM a program of this system's C library can load.
pub fn loadable_homes() -> Vec<PathBuf> {
    java_homes().into_iter().filter(|home| with_its_c_library(home).is_none()).collect()
}

/// The Java version in a home's release file, such as 17.
#[track_caller]
pub fn java_version(home: &Path) -> u32 {
    let release = std::fs::read_to_string(home.join("release")).unwrap();
    let version =
        release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION=\"")).expect("JAVA_VERSION");
    version.split(['.', '"', '-', '+']).next().unwrap().parse().unwrap()
}

/// Whether the JVM starts with these flags.
pub fn starts_with(home: &Path, flags: &[&str]) -> bool {
    let java = Command::new(home.join("bin/java")).args(flags).arg("-version").output();
    java.is_ok_and(|java| java.status.success())
}

fn homes_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.path().canonicalize().ok())
        .filter(|home| libjvm(home).is_file())
        .collect()
}

/// The path of the JVM's library in a home.
pub fn libjvm(home: &Path) -> PathBuf {
    home.join("lib/server/libjvm.so")
}
