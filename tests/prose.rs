//! The rules of CONTRIBUTING.md for prose that a program can check: first words of comments, and the length
//! of lines.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `max_width` of rustfmt.toml.
const MAX_COLUMNS: usize = 110;
/// Words that begin a riddle: "What is still there of what samples are of".
const OPENINGS: [&str; 4] = ["What", "Who", "Whose", "Those"];

/// The files under version control that have comments, by the sign that begins a comment's line.
fn files() -> Vec<(PathBuf, &'static str)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output().unwrap();
    assert!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).unwrap();
    let with_sign = |path: &str| {
        let sign = match Path::new(path).extension().and_then(|extension| extension.to_str()) {
            Some("rs" | "java" | "c" | "h" | "S" | "js" | "mjs") => "//",
            Some("sh" | "py" | "toml") => "#",
            None if path.starts_with(".ci/") => "#",
            _ => return None,
        };
        Some((root.join(path), sign))
    };
    listed.split('\0').filter_map(with_sign).collect()
}

/// The text of a comment in a line: after `//`, `///`, `//!`, `#`, or the `*` of a block.
fn comment<'a>(line: &'a str, sign: &str) -> Option<&'a str> {
    let line = line.trim_start();
    let is_in_block = sign == "//" && (line.starts_with("/*") || line.starts_with("* ") || line == "*");
    if is_in_block {
        return Some(line.trim_start_matches(['/', '*', ' ']));
    }
    let begin = if line.starts_with(sign) { 0 } else { line.find(&format!(" {sign} "))? };
    // A sign within a string begins no comment.
    if line[..begin].contains(['"', '\'']) {
        return None;
    }
    Some(line[begin..].trim_start_matches([' ', '/', '!', '#', '*']))
}

/// The lines of a Markdown file that are prose or a list, each with its number from 1: neither in a block of
/// code nor in a table.
fn prose_of(markdown: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    (1..).zip(markdown.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence && !line.starts_with("    ") && !line.trim_start().starts_with('|')
    })
}

/// Whether a sentence of the comment, or the line, begins with one of the words.
fn has_opening(comment: &str) -> bool {
    let sentences = std::iter::once(comment).chain(comment.split(". ").skip(1));
    sentences.into_iter().any(|sentence| {
        let word = sentence.split(|letter: char| !letter.is_alphabetic()).next();
        word.is_some_and(|word| OPENINGS.contains(&word))
    })
}

/// Whether the line has more than [`MAX_COLUMNS`] columns. Exceptions, which cannot be broken: a line with an
/// address (`://`), and a line with a word that alone has more columns, such as an encoded value.
fn is_too_long(line: &str) -> bool {
    let is_long = |text: &str| text.chars().count() > MAX_COLUMNS;
    is_long(line) && !line.contains("://") && !line.split_whitespace().any(is_long)
}

/// No comment has a sentence that begins with a word of [`OPENINGS`]. Every line of Rust, Java, C, assembly,
/// JavaScript and shell, code included, has at most [`MAX_COLUMNS`] columns; of Python and TOML, every line
/// with a comment. Exceptions: see [`is_too_long`].
#[test]
fn comments_begin_with_the_thing_and_lines_fit() {
    let files = files();
    assert!(files.len() > 500, "{} files", files.len());
    let mut complaints = Vec::new();
    for (path, sign) in files {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let has_long_code =
            path.extension().is_some_and(|extension| extension == "py" || extension == "toml");
        for (number, line) in text.lines().enumerate() {
            let comment = comment(line, sign);
            let place = || format!("{}:{}", path.display(), number + 1);
            if let Some(comment) = comment
                && has_opening(comment)
            {
                complaints.push(format!("{}: begins with a riddle: {comment}", place()));
            }
            if (comment.is_some() || !has_long_code) && is_too_long(line) {
                complaints.push(format!("{}: longer than {MAX_COLUMNS} columns", place()));
            }
        }
    }
    assert!(complaints.is_empty(), "{} lines:\n{}", complaints.len(), complaints.join("\n"));
}

/// Lines of Markdown outside of tables and code fit, with the exceptions of [`is_too_long`].
#[test]
fn lines_of_documents_fit() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = Command::new("git").args(["ls-files", "*.md"]).current_dir(root).output().unwrap();
    let paths = String::from_utf8(listed.stdout).unwrap();
    assert!(paths.lines().count() > 20, "{paths}");
    let mut complaints = Vec::new();
    for path in paths.lines() {
        let Ok(text) = fs::read_to_string(root.join(path)) else { continue };
        let long = prose_of(&text).filter(|(_, line)| is_too_long(line));
        complaints.extend(long.map(|(number, _)| format!("{path}:{number}")));
    }
    assert!(complaints.is_empty(), "longer than {MAX_COLUMNS} columns:\n{}", complaints.join("\n"));
}

#[test]
fn long_lines_are_seen_unless_they_cannot_be_broken() {
    let full = "x ".repeat(MAX_COLUMNS / 2);
    for line in [format!("{full}."), format!("é{full}"), format!("    call(\"{full}\");")] {
        assert!(is_too_long(&line), "{line}");
    }
    let letters = "é ".repeat(MAX_COLUMNS / 2);
    let word = format!("    \"{}\",", "x".repeat(MAX_COLUMNS));
    for line in [&full, &letters, &format!("{full}://"), &word] {
        assert!(!is_too_long(line), "{line}");
    }
}

#[test]
fn riddles_are_seen_in_every_form() {
    for (line, sign) in [
        ("    /// What is still there.", "//"),
        ("//! The state. Who reads it waits.", "//"),
        ("    let a = 1; // Whose it is.", "//"),
        (" * Those that are left.", "//"),
        ("/* What the handler counts. */", "//"),
        ("# What a setter costs", "#"),
    ] {
        assert!(comment(line, sign).is_some_and(has_opening), "{line}");
    }
    for (line, sign) in [
        ("    /// The part of what is left, whose owner is known.", "//"),
        ("    println!(\"// What?\");", "//"),
        ("echo \"# What\"", "#"),
        ("/// Whatever is in memory.", "//"),
    ] {
        assert!(!comment(line, sign).is_some_and(has_opening), "{line}");
    }
}
