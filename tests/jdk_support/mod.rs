//! The JVMs to test on.

use std::path::{Path, PathBuf};

/// The homes of all JDKs and runtimes to test on: those that OTLPPROF_TEST_JDKS lists, else what
/// scripts/install-jdks.sh has brought together, else what is installed.
///
/// # Panics
/// If there is none and `CI` is set; otherwise says loudly that nothing was tested.
pub(crate) fn java_homes() -> Vec<PathBuf> {
    if let Some(listed) = std::env::var_os("OTLPPROF_TEST_JDKS") {
        let homes: Vec<_> = std::env::split_paths(&listed).collect();
        for home in &homes {
            assert!(libjvm(home).is_file(), "OTLPPROF_TEST_JDKS: {} has no libjvm.so", home.display());
        }
        return homes;
    }
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join(".cache/jdks");
    let mut homes = homes_in(&cache);
    homes.extend(homes_in(Path::new("/usr/lib/jvm")));
    homes.sort();
    homes.dedup();
    if homes.is_empty() {
        assert!(std::env::var_os("CI").is_none(), "no JDK found: run scripts/install-jdks.sh");
        eprintln!("NOT TESTED: no JDK found; scripts/install-jdks.sh gets some");
    }
    homes
}

fn homes_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.path().canonicalize().ok())
        .filter(|home| libjvm(home).is_file())
        .collect()
}

/// The JVM's library in a home.
pub(crate) fn libjvm(home: &Path) -> PathBuf {
    home.join("lib/server/libjvm.so")
}
