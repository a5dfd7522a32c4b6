//! The artifacts for Java programs, with the agent of this build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use crate::made_once::made_once;
use otlpprof_testkit::this_build::agent;

/// A library whose copies stand for libraries of other platforms.
const LIBRARY: &str = otlpprof_testkit::products::DDPROFTEST;

/// The folder with the artifacts that scripts/package-jars.sh makes of this build's agent and of libraries
/// for other platforms.
pub(crate) static ARTIFACTS: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = [
        "LICENSE",
        "Cargo.toml",
        "java/api",
        "java/opentelemetry",
        "scripts/package-jars.sh",
        "scripts/elf-platform.sh",
        "scripts/fetch-opentelemetry.sh",
        "scripts/reproducible.sh",
    ];
    let inputs: Vec<_> =
        sources.map(|path| root.join(path)).into_iter().chain([PathBuf::from(LIBRARY), agent()]).collect();
    made_once("artifacts", &inputs, make)
});

/// Makes the artifacts in a folder.
pub(crate) fn make(folder: &Path) {
    let temporary = tempfile::tempdir().unwrap();
    let others = other_platforms().map(|(platform, library)| {
        let file = temporary.path().join(platform);
        fs::write(&file, library).unwrap();
        file
    });
    let agent = agent();
    let mut arguments = vec![Path::new("--out"), folder];
    for library in others.iter().chain([&agent]) {
        arguments.extend([Path::new("--library"), library]);
    }
    let output = package(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8_lossy(&output.stderr).to_lowercase();
    assert!(!printed.contains("warning"), "{printed}");
}

/// The platforms of the jar besides this machine's with glibc, each with a library for it: one of the test
/// libraries, whose header names another architecture, or whose list of libraries names musl.
pub(crate) fn other_platforms() -> [(String, Vec<u8>); 3] {
    let (own, other) =
        if cfg!(target_arch = "x86_64") { ("x86_64", "aarch64") } else { ("aarch64", "x86_64") };
    let glibc = fs::read(LIBRARY).unwrap();
    let (name, other_name) = (b"\0libc.so.6\0", b"\0libc.so\0\0\0");
    let at = glibc.windows(name.len()).position(|at| at == name).expect("it needs the C library");
    let mut musl = glibc.clone();
    musl[at..at + name.len()].copy_from_slice(other_name);
    let of_other = |library: &[u8]| {
        let mut library = library.to_vec();
        // e_machine: EM_AARCH64 or EM_X86_64.
        library[18] = if other == "aarch64" { 183 } else { 62 };
        library
    };
    [
        (format!("linux-{own}-musl"), musl.clone()),
        (format!("linux-{other}"), of_other(&glibc)),
        (format!("linux-{other}-musl"), of_other(&musl)),
    ]
}

/// Runs scripts/package-jars.sh.
pub(crate) fn package(arguments: &[&Path]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/package-jars.sh");
    // By default the files have the time of the commit, and tests share files of an earlier one.
    Command::new(script).args(arguments).env("SOURCE_DATE_EPOCH", "1000000000").output().unwrap()
}
