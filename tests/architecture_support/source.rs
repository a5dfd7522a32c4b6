//! The source files of the crate.

use std::fs;
use std::path::{Path, PathBuf};

/// A source file.
pub(crate) struct Source {
    /// The path below `src`.
    pub(crate) path: PathBuf,
    /// The contents.
    pub(crate) text: String,
}

impl Source {
    /// The module of the crate that the file belongs to: "elf" for `elf/notes.rs`.
    pub(crate) fn area(&self) -> String {
        let first = self.path.components().next().expect("a file has a name");
        Path::new(&first).file_stem().expect("a name").to_string_lossy().into_owned()
    }

    /// The number of module levels from the crate's root to this file's code: 2 for `elf/notes.rs`.
    pub(crate) fn depth(&self) -> usize {
        let is_mod_file = self.path.file_name().is_some_and(|name| name == "mod.rs");
        self.path.components().count() - usize::from(is_mod_file)
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

/// All source files of the crate, sorted by path.
pub(crate) fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = Vec::new();
    let mut directories = vec![root.clone()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("src can be read") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("UTF-8");
                sources.push(Source { path: path.strip_prefix(&root).expect("below it").to_owned(), text });
            }
        }
    }
    assert!(sources.len() > 20, "found {} files only", sources.len());
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

/// Removes `//` comments. This also cuts strings that contain `//`, such as URLs, but hides no import.
pub(crate) fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}
