//! The files of this build, which is the one of the running test program, and the folder of the project.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The folder of the project.
pub fn project() -> &'static Path {
    // SANITY: the package is in a folder of the project.
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The command `otlpprof`.
///
/// # Panics
/// If the command was not built. Cargo builds it before the tests and benchmarks of its package.
pub fn command() -> &'static Path {
    static COMMAND: LazyLock<PathBuf> = LazyLock::new(|| {
        // Test programs are in the folder `deps` beside the command.
        let command = folder_of_test_program().with_file_name("otlpprof");
        assert!(command.is_file(), "{}: the command was not built", command.display());
        command
    });
    &COMMAND
}

/// The agent that was built with this test; of OTLPPROF_TEST_BUILD, if set.
///
/// # Panics
/// If the agent was not built.
pub fn agent() -> PathBuf {
    let beside = folder_of_test_program().join("libotlpprof.so");
    let agent = PathBuf::from(built(beside.to_str().unwrap()));
    assert!(agent.is_file(), "{}: the agent was not built", agent.display());
    agent
}

/// The sample library, compiled without frame pointers, and with them.
pub fn libraries() -> [&'static str; 2] {
    static PATHS: LazyLock<[String; 2]> = LazyLock::new(|| {
        [otlpprof_testkit_products::DDPROFTEST, otlpprof_testkit_products::DDPROFTEST_FP].map(built)
    });
    PATHS.each_ref().map(String::as_str)
}

/// A folder for files that later runs of the tests use again: the value of Cargo's `CARGO_TARGET_TMPDIR`.
pub fn temporary_folder() -> PathBuf {
    // Of `target/PROFILE/deps` this is `target/tmp`.
    folder_of_test_program().ancestors().nth(2).expect("cargo's folder of test programs").join("tmp")
}

/// Whether an emulator runs the JVMs, with the libraries of OTLPPROF_TEST_BUILD.
pub fn is_emulated() -> bool {
    std::env::var_os("OTLPPROF_TEST_BUILD").is_some()
}

/// The library of this build's path in OTLPPROF_TEST_BUILD, the folder of a build for the architecture of
/// OTLPPROF_TEST_JDKS; without the variable, the path.
pub fn built(library: &str) -> String {
    let Some(folder) = std::env::var_os("OTLPPROF_TEST_BUILD") else { return library.to_owned() };
    let name = Path::new(library).file_name().unwrap();
    Path::new(&folder).join(name).to_str().unwrap().to_owned()
}

fn folder_of_test_program() -> PathBuf {
    let mut program = std::env::current_exe().unwrap();
    program.pop();
    program
}
