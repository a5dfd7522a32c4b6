//! The placeholders for paths in the agent's options: a test does not know the folder of its run.

use std::path::Path;

/// Replaces the placeholders in options: `FILE` by the file that most tests write to, `DIR` by its folder.
pub(super) fn with_paths(options: &str, profiles: &Path) -> String {
    let folder = profiles.to_str().expect("a temporary path is UTF-8");
    // The folder's random name may contain a placeholder, so the text is replaced part by part.
    let parts: Vec<_> = options.split("FILE").map(|part| part.replace("DIR", folder)).collect();
    parts.join(&format!("{folder}/profile.otlp"))
}
