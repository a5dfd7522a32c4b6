//! The tables in which a file with child modules names each of them with its duty.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::code_paths::{FileCode, Module};
use crate::source::Source;

/// Complaints about modules that a file declares without a row in its tables, and about rows that name
/// something else. Modules of tests need no row.
pub(crate) fn complaints(source: &Source) -> Vec<String> {
    let mut declared = declared_by(source);
    let mut complaints = Vec::new();
    for row in rows_of(&source.text) {
        if let Some(at) = declared.iter().position(|name| *name == row) {
            declared.remove(at);
        } else {
            complaints.push(format!("a row for {row}, which the file does not declare"));
        }
    }
    complaints.extend(declared.into_iter().map(|name| format!("no row for {name}")));
    complaints.iter().map(|complaint| format!("{}: {complaint}", source.path.display())).collect()
}

/// The names of the modules that a file declares. Files of two architectures for one module give one name. A
/// file of the declaring file's own name has the same duty for one architecture, and gives none.
pub(crate) fn declared_by(source: &Source) -> Vec<String> {
    // Most files declare none. To divide all files into tokens would take seconds.
    if !source.text.lines().any(|line| line.contains("mod ") && line.ends_with(';')) {
        return Vec::new();
    }
    let is_of_other_name =
        |files: &[PathBuf]| files.iter().any(|file| file.file_name() != source.path.file_name());
    let children = FileCode::read(&source.path, Module::new(), &source.text).children;
    let others = children.into_iter().filter(|child| is_of_other_name(&child.files));
    let modules: BTreeSet<_> = others.map(|child| child.module).collect();
    modules.into_iter().filter_map(|mut module| module.pop()).collect()
}

/// The names in the first column of all tables of a file's documentation whose second column is `Duty`.
fn rows_of(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_in_table = false;
    for line in text.lines().map_while(|line| line.strip_prefix("//!")) {
        let cells: Vec<_> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        if !line.trim_start().starts_with('|') {
            is_in_table = false;
        } else if let [_, "Duty"] = cells[..] {
            is_in_table = true;
        } else if is_in_table {
            let spans = cells[0].split('`').skip(1).step_by(2);
            names.extend(spans.map(|span| span.trim_start_matches("mod@").to_owned()));
        }
    }
    names
}

#[test]
fn rows_and_modules_are_compared_both_ways() {
    let complaints_of = |head: &str, code: &str| {
        complaints(&Source { path: "zone/mod.rs".into(), text: format!("//! A zone.\n{head}\n{code}\n") })
    };
    let table = "//!\n//! | Module | Duty |\n//! |---|---|\n//! | `a`, [`mod@b`] | the parts, see `c` |";
    assert!(complaints_of(table, "mod a;\npub mod b;\n#[cfg(test)]\nmod tests;").is_empty());
    assert_eq!(complaints_of(table, "mod a;"), ["zone/mod.rs: a row for b, which the file does not declare"]);
    assert_eq!(complaints_of(table, "mod a;\nmod b;\nmod c;"), ["zone/mod.rs: no row for c"]);
    let other = "//!\n//! | Key | Entries |\n//! |---|---|\n//! | `a` | numbers |";
    assert_eq!(complaints_of(other, "mod a;"), ["zone/mod.rs: no row for a"]);
    let of_both = "#[cfg(x86)]\n#[path = \"x86\"]\nmod arch { mod a; }\n#[cfg(arm)]\nmod arch { mod a; }";
    assert_eq!(complaints_of(table, &format!("{of_both}\nmod b;")), [""; 0]);
    assert_eq!(complaints_of(table, &format!("{of_both}\nmod a;\nmod b;")), ["zone/mod.rs: no row for a"]);
    assert_eq!(complaints_of("", "#[path = \"x86/mod.rs\"]\nmod arch;"), [""; 0]);
}
