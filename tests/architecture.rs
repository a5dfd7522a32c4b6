//! Compares the source with the rules in ARCHITECTURE.md and CONTRIBUTING.md that the compiler does not
//! hold: which file imports which, what the signal zone may contain, and how files are named, documented and
//! limited in length.

#[path = "architecture/code_paths.rs"]
mod code_paths;
#[path = "architecture/duty_tables.rs"]
mod duty_tables;
#[path = "architecture/file_imports.rs"]
mod file_imports;
#[path = "architecture/linker_lock.rs"]
mod linker_lock;
#[path = "architecture/source.rs"]
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use file_imports::FileImports;
use source::{Source, crates, dependencies_of, file_of, sources, sources_and_testkit};

/// Forms that code in the signal zone must not contain, each with the reason. The crate's clippy.toml lists
/// calls by path. Clippy does not see the forms listed here.
const FORBIDDEN_IN_SIGNAL: &[(&str, &str)] = &[
    ("assert!", "panics"),
    ("thread_local!", "the first touch in a thread allocates"),
    ("async ", "there is no executor"),
    ("dyn ", "a handler's calls are known when it is compiled"),
    ("std::fs", "allocates"),
    ("std::env", "locks"),
    ("std::collections", "allocates"),
];

/// Files that only one architecture has, each with the reason. All other files of an architecture
/// have a twin of the same name.
const WITHOUT_TWIN: &[(&str, &str)] = &[
    ("signal/walk/aarch64/actions_before.rs", "x86_64 counts the bytes that the remaining actions remove"),
    ("signal/walk/aarch64/reserved_zone.rs", "x86_64 recognises a poll by its own bytes"),
    ("signal/walk/x86_64/bytes_to_return.rs", "aarch64 reads the actions so far"),
];

const MOST_LINES: usize = 600;
const VAGUE_NAMES: &[&str] = &["utils", "util", "common", "misc", "helpers", "helper", "v2", "api2"];

/// Asserts that the list of complaints is empty, and prints them all if it is not.
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// The rows of ARCHITECTURE.md's table: each crate with the crates that it imports.
fn documented_imports() -> BTreeMap<String, BTreeSet<String>> {
    let document = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md"))
        .expect("ARCHITECTURE.md");
    let table =
        document.split("| Crate | Duty | Imports |\n|---|---|---|\n").nth(1).expect("a table of crates");
    let mut rows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in table.lines().take_while(|line| line.starts_with('|')) {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _duty, imports] = cells[..] else { panic!("not three cells: {line}") };
        let imports = match imports {
            "nothing" => BTreeSet::new(),
            listed => listed.split(", ").map(|name| name.trim_matches('`').to_owned()).collect(),
        };
        let before = rows.insert(name.trim_matches('`').to_owned(), imports);
        assert!(before.is_none(), "two rows for {name}");
    }
    rows
}

/// The compiler holds each crate to its dependencies.
#[test]
fn the_document_has_the_dependencies_of_the_crates() {
    let held: BTreeMap<_, _> =
        crates().into_iter().map(|name| (name.clone(), dependencies_of(&name))).collect();
    assert_eq!(documented_imports(), held);
}

/// The sources that are compiled for one architecture, without the sources that are only for the `other`.
fn sources_without(other: &str) -> Vec<Source> {
    let is_of_other = |source: &Source| {
        source.path.components().any(|part| Path::new(&part).file_stem().is_some_and(|name| name == other))
    };
    sources_and_testkit().into_iter().filter(|source| !is_of_other(source)).collect()
}

/// A reader can understand a file by the files that it imports.
#[test]
fn files_import_each_other_in_one_direction() {
    let mut complaints = BTreeSet::new();
    for other in ["x86_64", "aarch64"] {
        let sources = sources_without(other);
        let mut reached = BTreeSet::new();
        for root in sources.iter().filter(|source| source.path.ends_with("lib.rs")) {
            let imports = FileImports::of(&root.path, &sources);
            complaints.extend(imports.circles().iter().map(|circle| imports.describe(circle)));
            reached.extend(imports.files());
        }
        // A file that is not reached would not be checked.
        let expected = sources.iter().filter(|source| !source.is_test() && source.area() != "main");
        assert_eq!(reached, expected.map(|source| &*source.path).collect());
    }
    assert_none(&complaints.into_iter().collect::<Vec<_>>());
}

/// Cargo takes no version in `[workspace.dependencies]` from `workspace.package`, and accepts an older
/// one, with which a published crate would miss what another one has added.
#[test]
fn crates_require_each_other_in_their_present_version() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let manifest = fs::read_to_string(path).expect("UTF-8");
    let own = manifest.lines().filter(|line| line.contains("{ path = \"crates/"));
    let required: Vec<_> = own.filter(|line| line.contains("version")).collect();
    assert!(!required.is_empty());
    let present = concat!("version = \"", env!("CARGO_PKG_VERSION"), "\"");
    let others = required.iter().filter(|line| !line.contains(present));
    assert_none(&others.map(|line| format!("{line}: not {present}")).collect::<Vec<_>>());
}

/// The documents that describe the code.
fn maps() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let internals = fs::read_dir(root.join("docs/internals")).expect("docs/internals");
    internals.map(|entry| entry.expect("an entry").path()).chain([root.join("ARCHITECTURE.md")]).collect()
}

/// Paths in code spans that end as a file or a folder of this project does; HotSpot's files do not.
fn paths_in(document: &str) -> impl Iterator<Item = &str> {
    let spans = document.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    spans.filter(|span| {
        let is_path = span.contains('/') && !span.starts_with('/');
        let is_ours = [".rs", ".sh", ".java", ".md", ".toml", "/"].iter().any(|end| span.ends_with(end));
        is_path && is_ours && !span.contains([' ', '*', '{'])
    })
}

/// Paths are relative to the project or to `src`, or begin with a crate's name instead of its `src`.
#[test]
fn files_that_the_documents_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut named, mut complaints) = (0, Vec::new());
    for map in maps() {
        let document = fs::read_to_string(&map).expect("UTF-8");
        for path in paths_in(&document) {
            named += 1;
            if !root.join(path).exists() && !file_of(Path::new(path)).exists() {
                complaints.push(format!("{}: {path} does not exist", map.display()));
            }
        }
    }
    assert!(named > 300, "{named} paths only");
    assert_none(&complaints);
}

/// The paths of items in code spans: `signal::sample::take` begins with the name of a crate.
fn items_in<'a>(document: &'a str, crates: &BTreeSet<String>) -> Vec<&'a str> {
    let spans = document.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let is_item = |span: &&str| {
        let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        span.split_once("::").is_some_and(|(first, _)| crates.contains(first))
            && span.split("::").all(is_name)
    };
    spans.filter(is_item).collect()
}

/// Whether a crate has an item of this path: files of modules as far as they go, and then a definition.
fn has_item(path: &str, sources: &[Source]) -> bool {
    let mut place = PathBuf::new();
    for name in path.split("::") {
        let below = place.join(name);
        let is_module =
            |source: &Source| source.path.starts_with(&below) || source.path == below.with_extension("rs");
        if sources.iter().any(is_module) {
            place = below;
            continue;
        }
        let forms = ["fn", "struct", "enum", "trait", "const", "static", "type", "mod"];
        let definitions = forms.map(|form| format!(" {form} {name}"));
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let defines = |source: &Source| {
            let is_here = source.path.starts_with(&place) || source.path == place.with_extension("rs");
            is_here && {
                let text = format!(" {}", source.text.replace('\n', " "));
                let is_in = |definition: &String| {
                    text.match_indices(definition.as_str()).any(|(at, found)| ends(&text[at + found.len()..]))
                };
                definitions.iter().any(is_in)
            }
        };
        return sources.iter().any(defines);
    }
    true
}

#[test]
fn items_that_the_documents_name_exist() {
    let (crates, sources) = (crates(), sources());
    assert!(has_item("signal::sample::SETUP", &sources) && has_item("otlp", &sources));
    assert!(!has_item("signal::sample::NOTHING", &sources) && !has_item("signal::nowhere", &sources));
    let (mut named, mut complaints) = (0, Vec::new());
    for map in maps() {
        let document = fs::read_to_string(&map).expect("UTF-8");
        for path in items_in(&document, &crates) {
            named += 1;
            if !has_item(path, &sources) {
                complaints.push(format!("{}: {path} does not exist", map.display()));
            }
        }
    }
    assert!(named > 100, "{named} items only");
    assert_none(&complaints);
}

/// A panic that reaches a C frame ends the process.
#[test]
fn panics_are_stopped_where_others_call_us() {
    let mut complaints = Vec::new();
    for source in sources().iter().filter(|source| source.area() != "signal") {
        let code = source.code_in_use();
        for (at, _) in code.match_indices("extern \"").filter(|(at, _)| code[*at..].contains("fn ")) {
            let (head, rest) = code[at..].split_once("fn ").expect("it was found");
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            // Types have no function name. Blocks of imports have more words before the `fn`. Naked functions
            // cannot panic.
            let is_naked = code[..at].trim_end().ends_with("#[unsafe(naked)]");
            if name.is_empty() || head.split_whitespace().count() != 2 || is_naked {
                continue;
            }
            let body = rest.split("\n}").next().unwrap_or_default();
            if !["catch_unwind(", "guarded(", "with_agent(", " load("]
                .iter()
                .any(|guard| body.contains(guard))
            {
                complaints.push(format!("{}: {name} lets panics out", source.path.display()));
            }
        }
    }
    assert_none(&complaints);
}

#[test]
fn the_signal_zone_has_no_forbidden_form() {
    let mut complaints = Vec::new();
    for source in sources().iter().filter(|source| source.area() == "signal") {
        // Constant assertions are checked at compile time.
        let code = source.code_in_use().replace("const _: () = assert!", "");
        for (forbidden, reason) in FORBIDDEN_IN_SIGNAL {
            if code.contains(forbidden) {
                complaints.push(format!("{}: {}: {reason}", source.path.display(), forbidden.trim()));
            }
        }
    }
    assert_none(&complaints);
}

/// An allocator that unwinds waits for the linker's lock while it holds its own.
#[test]
fn little_is_done_with_the_linkers_lock() {
    assert_none(&linker_lock::complaints(&sources()));
}

#[test]
fn files_are_documented_short_and_well_named() {
    let mut complaints = Vec::new();
    for source in sources_and_testkit() {
        let path = source.path.display();
        if !source.text.starts_with("//! ") {
            complaints.push(format!("{path}: does not begin with a `//!` line that says its duty"));
        }
        let lines = source.text.lines().count();
        if lines > MOST_LINES {
            complaints.push(format!("{path}: {lines} lines, more than {MOST_LINES}; split it by duty"));
        }
        let names =
            source.path.components().map(|part| Path::new(&part).file_stem().unwrap_or_default().to_owned());
        for name in names.filter(|name| VAGUE_NAMES.iter().any(|bad| name == bad)) {
            complaints.push(format!("{path}: '{}' tells no duty", name.display()));
        }
    }
    assert_none(&complaints);
}

/// A reader finds the file for a duty in the first lines of its folder's `mod.rs` or `lib.rs`.
#[test]
fn each_module_is_in_the_table_of_its_folder() {
    let sources = sources_and_testkit();
    let declared: usize = sources.iter().map(|source| duty_tables::declared_by(source).len()).sum();
    assert!(declared > 800, "{declared} modules only");
    assert_none(&sources.iter().flat_map(duty_tables::complaints).collect::<Vec<_>>());
}

/// A module with files of its own has its code in the `mod.rs` of their folder, never beside the folder.
#[test]
fn a_folder_has_its_own_module_file() {
    let sources = sources_and_testkit();
    let mut complaints = Vec::new();
    for source in &sources {
        let folder = source.path.with_extension("");
        if sources.iter().any(|other| other.path.starts_with(&folder)) {
            complaints.push(format!("{}: belongs in {}/mod.rs", source.path.display(), folder.display()));
        }
    }
    assert_none(&complaints);
}

/// The contents of the string literals in a file's constants and formats, for names that one file defines.
fn literals_of(sources: &[Source], file: &str) -> Vec<String> {
    let source = sources.iter().find(|source| source.path == Path::new(file)).expect(file);
    source.code_in_use().split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Complaints about files other than `file` whose code in use contains one of these texts.
fn spelt_outside(sources: &[Source], file: &str, texts: &BTreeSet<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|source| source.path != Path::new(file)) {
        let code = source.code_in_use();
        for text in texts.iter().filter(|text| code.contains(text.as_str())) {
            complaints.push(format!("{}: {text} belongs in {file}", source.path.display()));
        }
    }
    complaints
}

/// A marker that is renamed is then renamed everywhere.
#[test]
fn markers_are_spelt_in_one_file() {
    const FILE: &str = "model/markers.rs";
    let sources = sources();
    // The kind, and the sign behind the kind: `"[frozen:` and `"[truncated]`.
    let kinds = literals_of(&sources, FILE).into_iter().filter_map(|literal| {
        let end = literal.find([':', ']'])?;
        Some(format!("\"{}", &literal[..=end]))
    });
    let kinds: BTreeSet<_> = kinds.collect();
    assert!(kinds.len() > 10 && kinds.iter().all(|kind| kind.starts_with("\"[")), "{kinds:?}");
    assert_none(&spelt_outside(&sources, FILE, &kinds));
}

/// A key that is renamed is then renamed everywhere.
#[test]
fn attribute_keys_are_spelt_in_one_file() {
    const FILE: &str = "model/attribute_keys.rs";
    let sources = sources();
    let keys = literals_of(&sources, FILE).into_iter().map(|key| match key.ends_with('.') {
        true => format!("\"{key}"),
        false => format!("\"{key}\""),
    });
    let keys: BTreeSet<_> = keys.collect();
    assert!(keys.len() > 40 && keys.iter().all(|key| key.contains('.')), "{keys:?}");
    assert_none(&spelt_outside(&sources, FILE, &keys));
}

/// Whether the line compares a variable named after a release or a version with the number of a release. One
/// digit is a version of another kind.
fn compares_release(line: &str) -> bool {
    ["<", ">", "<=", ">=", "==", "!="].iter().any(|sign| {
        line.split_once(&format!(" {sign} ")).is_some_and(|(left, right)| {
            let name = left.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            let number = right.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            ["version", "release", "feature"].iter().any(|end| name.ends_with(end)) && number.len() == 2
        })
    })
}

/// A fact that depends on HotSpot's release is a predicate there. Handlers read such a fact from the layout.
#[test]
fn releases_are_compared_in_one_file() {
    const FILE: &str = "jvm/layout/release.rs";
    assert!(compares_release("if layout.java_version < 21 {") && compares_release("release >= 24 && x"));
    assert!(!compares_release("if version != 1 || table != 0") && !compares_release("version >= FIRST"));
    let sources = sources();
    let is_exempt = |source: &Source| source.path == Path::new(FILE);
    assert!(sources.iter().any(is_exempt), "{FILE} does not exist");
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| !is_exempt(source)) {
        for line in source.code_in_use().lines() {
            if compares_release(line) || source.area() == "signal" && line.contains("java_version") {
                found.push(format!("{}: {}", source.path.display(), line.trim()));
            }
        }
    }
    assert_none(&found);
}

/// An engineer who changes one architecture thereby finds the file to change for the other.
#[test]
fn each_file_of_an_architecture_has_a_twin() {
    const TWINS: [(&str, &str); 2] = [("x86_64", "aarch64"), ("aarch64", "x86_64")];
    let files: BTreeSet<_> =
        sources().iter().map(|source| source.path.to_string_lossy().replace('\\', "/")).collect();
    let mut lonely = BTreeSet::new();
    let mut seen = 0;
    for file in files.iter().filter(|file| !file.contains("/tests/")) {
        for (own, other) in TWINS {
            let twin =
                [(format!("/{own}/"), format!("/{other}/")), (format!("/{own}.rs"), format!("/{other}.rs"))]
                    .iter()
                    .find(|(own, _)| file.contains(own.as_str()))
                    .map(|(own, other)| file.replace(own, other));
            if let Some(twin) = twin {
                seen += 1;
                if !files.contains(&twin) {
                    lonely.insert(file.as_str());
                }
            }
        }
    }
    assert!(seen > 50, "only {seen} files of an architecture");
    assert_eq!(lonely, WITHOUT_TWIN.iter().map(|(file, _)| *file).collect());
}

#[test]
fn tests_are_not_code_in_use() {
    let source = |path: &str, text: &str| Source { path: path.into(), text: text.into() };
    let both = source("signal/a.rs", "fn f() {} // log::\n\n#[cfg(test)]\nmod tests {\n    use x::y;\n}\n");
    assert_eq!(both.code_in_use().trim(), "fn f() {}");
    assert_eq!(source("signal/tests.rs", "use x::y;").code_in_use(), "");
    assert_eq!(both.area(), "signal");
    assert_eq!(source("main.rs", "").area(), "main");
}
