//! The source files of the package and of the crates below `crates`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A source file.
pub(crate) struct Source {
    /// The path below `src`. The file of a crate has the crate's name and the path below the crate's `src`:
    /// `core/record.rs` for `crates/core/src/record.rs`.
    pub(crate) path: PathBuf,
    /// The contents.
    pub(crate) text: String,
}

impl Source {
    /// The crate that the file belongs to: "elf" for `elf/notes.rs`. A file of the package `otlpprof` gives
    /// its own name.
    pub(crate) fn area(&self) -> String {
        let first = self.path.components().next().expect("a file has a name");
        Path::new(&first).file_stem().expect("a name").to_string_lossy().into_owned()
    }

    /// Whether the file has tests only, by the name of the file or of a folder.
    pub(crate) fn is_test(&self) -> bool {
        let is_test = |name: &str| name == "tests" || name.ends_with("_tests");
        let mut names =
            self.path.components().map(|part| Path::new(&part).file_stem().unwrap_or_default().to_owned());
        names.any(|name| is_test(&name.to_string_lossy()))
    }

    /// The code without comments and tests. Tests stand at the end of a file or in files of their own.
    pub(crate) fn code_in_use(&self) -> String {
        if self.is_test() {
            return String::new();
        }
        let code = without_comments(&self.text);
        let test_module =
            ["mod tests", "#[path", "#[expect", "#[allow"].map(|next| format!("#[cfg(test)]\n{next}"));
        let end = test_module.iter().filter_map(|start| code.find(start)).min().unwrap_or(code.len());
        code[..end].to_owned()
    }
}

/// The names of the crates below `crates`: the names of their folders. Their packages have the same names,
/// with hyphens, after `otlpprof-`.
pub(crate) fn crates() -> BTreeSet<String> {
    let entries = fs::read_dir(root().join("crates")).expect("crates can be read");
    entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect()
}

/// The crates below `crates` that a crate depends on by `[dependencies]` of its manifest.
pub(crate) fn dependencies_of(name: &str) -> BTreeSet<String> {
    let manifest = root().join("crates").join(name).join("Cargo.toml");
    let manifest =
        fs::read_to_string(&manifest).unwrap_or_else(|error| panic!("{}: {error}", manifest.display()));
    let section = manifest.split("\n[").find_map(|section| section.strip_prefix("dependencies]\n"));
    let lines = section.unwrap_or_default().lines();
    let names = lines.filter_map(|line| line.strip_prefix("otlpprof-")?.split(['.', ' ']).next());
    names.map(|name| name.replace('-', "_")).collect()
}

/// The file of a [`Source::path`].
pub(crate) fn file_of(path: &Path) -> PathBuf {
    let mut parts = path.components();
    let first = parts.next().and_then(|part| part.as_os_str().to_str());
    match first.filter(|name| crates().contains(*name)) {
        Some(name) => root().join("crates").join(name).join("src").join(parts),
        None => root().join("src").join(path),
    }
}

/// All source files, sorted by path.
pub(crate) fn sources() -> Vec<Source> {
    let mut sources = Vec::new();
    add_sources(&root().join("src"), Path::new(""), &mut sources);
    for name in crates() {
        add_sources(&root().join("crates").join(&name).join("src"), Path::new(&name), &mut sources);
    }
    assert!(sources.len() > 500, "found {} files only", sources.len());
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

/// All source files, and those of `testkit`, whose paths begin with its name.
pub(crate) fn sources_and_testkit() -> Vec<Source> {
    let mut sources = sources();
    let others = sources.len();
    add_sources(&root().join("testkit/src"), Path::new("testkit"), &mut sources);
    assert!(sources.len() > others + 30, "found {} files of testkit only", sources.len() - others);
    sources
}

/// Adds the source files of a folder. Their paths begin with `prefix`.
fn add_sources(folder: &Path, prefix: &Path, sources: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let entry = entry.expect("an entry");
        let (file, path) = (entry.path(), prefix.join(entry.file_name()));
        if file.is_dir() {
            add_sources(&file, &path, sources);
        } else if file.extension().is_some_and(|extension| extension == "rs") {
            sources.push(Source { path, text: fs::read_to_string(&file).expect("UTF-8") });
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Removes `//` comments. This also cuts strings that contain `//`, such as URLs, but hides no import.
pub(crate) fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}
