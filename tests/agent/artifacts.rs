//! The artifacts for Java programs, with the agent of this build.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use crate::agent_support::agent;
use crate::agent_support::made_once::made_once;

/// The folder with the artifacts that scripts/package.sh makes of this build's agent.
pub(crate) static ARTIFACTS: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = ["LICENSE", "Cargo.toml", "java/api", "java/opentelemetry", "scripts/package.sh"];
    let inputs: Vec<_> = sources.map(|path| root.join(path)).into_iter().chain([agent()]).collect();
    made_once("artifacts", &inputs, |folder| {
        let output = package(&[Path::new("--library"), &agent(), Path::new("--out"), folder]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8_lossy(&output.stderr).to_lowercase();
        assert!(!printed.contains("warning"), "{printed}");
    })
});

/// Runs scripts/package.sh.
pub(crate) fn package(arguments: &[&Path]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/package.sh");
    Command::new(script).args(arguments).output().unwrap()
}
