//! Which file imports which, and the circles of files that import each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use crate::code_paths::{CodePath, FileCode, Module};
use crate::source::Source;

/// The files that each file imports, itself excluded. Test code imports nothing.
///
/// A path is an import of the file in which its last module is declared or has its code. A re-export is an
/// import, and so is the use of a re-exported name: of the file that re-exports.
pub(crate) struct FileImports<'s> {
    imports: BTreeMap<&'s Path, BTreeSet<&'s Path>>,
}

/// Files that import each other, directly or through one another.
pub(crate) type Circle<'s> = BTreeSet<&'s Path>;

impl<'s> FileImports<'s> {
    /// Reads the `root` of a crate, such as `core/lib.rs`, and all files that the root declares, directly or
    /// through others. Files that are declared and not among `sources` are left out.
    pub(crate) fn of(root: &'s Path, sources: &'s [Source]) -> Self {
        let sources: BTreeMap<&Path, &str> =
            sources.iter().map(|source| (&*source.path, &*source.text)).collect();
        let mut modules = Modules::default();
        let mut paths = Vec::new();
        let mut unread = vec![(Module::new(), root)];
        let mut imports = BTreeMap::new();
        while let Some((module, file)) = unread.pop() {
            let code = FileCode::read(file, module.clone(), sources[file]);
            modules.add(module, file);
            code.inline_modules.into_iter().for_each(|module| modules.add(module, file));
            for child in code.children {
                let files = child.files.iter().filter_map(|file| sources.get_key_value(&**file));
                unread.extend(files.map(|(&file, _)| (child.module.clone(), file)));
            }
            paths.extend(code.paths.into_iter().map(|path| (file, path)));
            imports.insert(file, BTreeSet::new());
        }
        let imported = modules.imported(&paths);
        for (file, path) in &paths {
            let in_imported = || {
                let from: &Module = imported.get(&(*file, &*path.names[0]))?;
                Some([from, &path.names[1..]].concat())
            };
            let target = modules.absolute(path).or_else(in_imported);
            let others = target.and_then(|names| modules.files_of(&names)).into_iter().flatten();
            imports.entry(*file).or_default().extend(others.filter(|other| *other != file));
        }
        Self { imports }
    }

    /// All files that have been read.
    pub(crate) fn files(&self) -> impl Iterator<Item = &'s Path> {
        self.imports.keys().copied()
    }

    /// The files that a file imports.
    pub(crate) fn imports_of(&self, file: &Path) -> &BTreeSet<&'s Path> {
        &self.imports[file]
    }

    /// All circles. Each is as large as possible: no file is in two of them.
    pub(crate) fn circles(&self) -> BTreeSet<Circle<'s>> {
        let reached: BTreeMap<_, _> = self.files().map(|file| (file, self.reached_from(file))).collect();
        let in_circles = reached.iter().filter(|(file, others)| others.contains(*file));
        let circle_of = |(file, others): (&&Path, &BTreeSet<&'s Path>)| {
            others.iter().copied().filter(|other| reached[other].contains(file)).collect()
        };
        in_circles.map(circle_of).collect()
    }

    /// The files that a file imports, directly or through others.
    fn reached_from(&self, file: &'s Path) -> BTreeSet<&'s Path> {
        let mut reached = BTreeSet::new();
        let mut unread = vec![file];
        while let Some(file) = unread.pop() {
            unread.extend(self.imports_of(file).iter().filter(|&&other| reached.insert(other)));
        }
        reached
    }

    /// The files of a circle, each with the files of the circle that it imports.
    pub(crate) fn describe(&self, circle: &Circle<'_>) -> String {
        let mut text = format!("{} files import each other in a circle:", circle.len());
        for file in circle {
            let others: Vec<_> =
                self.imports_of(file).intersection(circle).map(|other| other.to_string_lossy()).collect();
            write!(text, "\n    {} imports {}", file.display(), others.join(", ")).expect("a String");
        }
        text
    }
}

/// The files with the code of each module. More than one file: a file for each architecture.
#[derive(Default)]
struct Modules<'s>(BTreeMap<Module, BTreeSet<&'s Path>>);

impl<'s> Modules<'s> {
    fn add(&mut self, module: Module, file: &'s Path) {
        self.0.entry(module).or_default().insert(file);
    }

    /// The modules that each file imports by name, keyed by the file and the name. Other paths in the file
    /// may begin with that name.
    fn imported<'p>(&self, paths: &'p [(&'s Path, CodePath)]) -> BTreeMap<(&'s Path, &'p str), Module> {
        let of_module = |(file, path): &'p (&'s Path, CodePath)| {
            let module = self.absolute(path).filter(|names| self.0.contains_key(names))?;
            Some(((*file, &**path.names.last()?), module))
        };
        paths.iter().filter_map(of_module).collect()
    }

    /// The files of the module that a path from the crate's root leads to.
    fn files_of(&self, names: &[String]) -> Option<&BTreeSet<&'s Path>> {
        // The last names name items.
        (0..=names.len()).rev().find_map(|length| self.0.get(&names[..length]))
    }

    /// The names of the path from the crate's root; `None` for a path into another crate, and for a path that
    /// begins with an imported name.
    fn absolute(&self, path: &CodePath) -> Option<Vec<String>> {
        let CodePath { module, names } = path;
        let supers = names.iter().take_while(|name| *name == "super").count();
        let (from, names) = match &*names[0] {
            "crate" => (0, &names[1..]),
            "self" => (module.len(), &names[1..]),
            "super" => (module.len().checked_sub(supers)?, &names[supers..]),
            child if self.0.contains_key(&[module, &[child.to_owned()][..]].concat()) => {
                (module.len(), &names[..])
            }
            _ => return None,
        };
        Some([&module[..from], names].concat())
    }
}

/// Sources of these contents, by their paths below `src`.
fn made_of(files: &[(&str, &str)]) -> Vec<Source> {
    files.iter().map(|&(path, text)| Source { path: path.into(), text: text.into() }).collect()
}

/// The files that `zone/one.rs` with this text imports, in a crate with files of several depths.
fn imported_by(text: &str) -> Vec<String> {
    let sources = made_of(&[
        ("lib.rs", "pub mod core;\npub mod zone;"),
        ("core/mod.rs", "pub mod bytes;"),
        ("core/bytes.rs", ""),
        ("zone/mod.rs", "mod one;\nmod two;\npub mod three;\npub use two::Two;"),
        ("zone/one.rs", text),
        ("zone/one/inner.rs", ""),
        ("zone/one/x86_64/entry.rs", ""),
        ("zone/x86_64/handler.rs", ""),
        ("zone/two.rs", ""),
        ("zone/three/mod.rs", "pub mod deep;"),
        ("zone/three/deep.rs", ""),
    ]);
    let imports = FileImports::of(Path::new("lib.rs"), &sources);
    imports.imports_of(Path::new("zone/one.rs")).iter().map(|file| file.display().to_string()).collect()
}

#[test]
fn paths_lead_to_files() {
    const NONE: [&str; 0] = [];
    assert_eq!(imported_by("use crate::core::bytes::Bytes;"), ["core/bytes.rs"]);
    assert_eq!(
        imported_by("use crate::core::{Other, bytes::{self, Bytes as B}};"),
        ["core/bytes.rs", "core/mod.rs"]
    );
    assert_eq!(
        imported_by("use crate::{core::bytes, zone::three::{deep::*}};"),
        ["core/bytes.rs", "zone/three/deep.rs"]
    );
    assert_eq!(imported_by("use super::two::Two;"), ["zone/two.rs"]);
    assert_eq!(imported_by("use super::{three::deep::Deep, two};"), ["zone/three/deep.rs", "zone/two.rs"]);
    assert_eq!(imported_by("use super::super::core::bytes::Bytes;"), ["core/bytes.rs"]);
    assert_eq!(
        imported_by("fn f() -> super::two::Two { crate::core::bytes::g::<u8>() }"),
        ["core/bytes.rs", "zone/two.rs"]
    );
    assert_eq!(
        imported_by("fn f() { assert!(super::two::g() == \"}\"); super::three::h() }"),
        ["zone/three/mod.rs", "zone/two.rs"]
    );
    assert_eq!(
        imported_by("use super::three;\nfn f() { three::deep::g() }"),
        ["zone/three/deep.rs", "zone/three/mod.rs"],
        "a path that begins with an imported module"
    );
    assert_eq!(imported_by("use super::Two;"), ["zone/mod.rs"], "a name that another file re-exports");
    assert_eq!(imported_by("use super::*;"), ["zone/mod.rs"]);
    assert_eq!(
        imported_by("use super::{\n    two::Two,\n    three::Three,\n};"),
        ["zone/three/mod.rs", "zone/two.rs"],
        "regression: a comma at the end was an import of the parent"
    );
    assert_eq!(imported_by("mod inner;\npub use inner::Inner;"), ["zone/one/inner.rs"]);
    assert_eq!(imported_by("mod inner;\nfn f() { self::inner::g() }"), ["zone/one/inner.rs"]);
    assert_eq!(imported_by("use self::Own::First;\nenum Own { First }"), NONE);
    assert_eq!(
        imported_by("use std::two::Two; use ::two::Two; fn f() { Two::g(); <T as U>::two::h() }"),
        NONE
    );
    assert_eq!(imported_by("pub(in crate::zone) struct One(pub(super) u8);"), NONE);
}

#[test]
fn inline_modules_and_attributes_are_followed() {
    const NONE: [&str; 0] = [];
    assert_eq!(
        imported_by("struct One; mod part { use super::One; use super::super::two::Two; }"),
        ["zone/two.rs"]
    );
    assert_eq!(imported_by("macro_rules! m { ($n:ident) => { mod $n { use super::One; } } }"), NONE);
    let arch = "#[path = \"x86_64/handler.rs\"]\nmod arch;\nfn f() { arch::g() }";
    assert_eq!(imported_by(arch), ["zone/x86_64/handler.rs"]);
    let arch = "#[path = \"one/x86_64\"]\nmod arch { pub mod entry; }\nuse arch::entry::Entry;";
    assert_eq!(imported_by(arch), ["zone/one/x86_64/entry.rs"]);
    assert_eq!(imported_by("#[derive(super::two::Two)] struct One;"), ["zone/two.rs"]);
}

#[test]
fn comments_strings_and_tests_import_nothing() {
    const NONE: [&str; 0] = [];
    assert_eq!(imported_by("//! [`super::two`]\n// use super::two::Two;\n/* use super::two::Two; */"), NONE);
    assert_eq!(imported_by("const A: &str = \"use super::two::Two;\"; // http://x\"\n"), NONE);
    assert_eq!(
        imported_by(
            "#[cfg(test)]\nuse super::two::Two;\n#[cfg(test)]\nmod tests { use super::super::two::Two; }"
        ),
        NONE
    );
    assert_eq!(
        imported_by("#[cfg(test)]\nfn f() { super::two::g() }\nuse super::three::Three;"),
        ["zone/three/mod.rs"]
    );
}

#[test]
fn a_crate_has_a_root_of_its_own() {
    let sources = made_of(&[
        ("lib.rs", "mod a;"),
        ("a.rs", ""),
        ("zone/lib.rs", "mod a;\nmod b;"),
        ("zone/a.rs", "use crate::b::B;"),
        ("zone/b.rs", ""),
    ]);
    let imports = FileImports::of(Path::new("zone/lib.rs"), &sources);
    assert_eq!(imports.imports_of(Path::new("zone/a.rs")), &[Path::new("zone/b.rs")].into());
    assert_eq!(imports.files().count(), 3);
}

#[test]
fn circles_are_found_and_described() {
    let described = |files: &[(&str, &str)]| {
        let sources = made_of(files);
        let imports = FileImports::of(Path::new("lib.rs"), &sources);
        imports.circles().iter().map(|circle| imports.describe(circle)).collect::<Vec<_>>()
    };
    let two = described(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;"),
        ("a.rs", "use crate::b::B;\nuse crate::c::C;"),
        ("b.rs", "fn f() { super::a::g() }"),
        ("c.rs", ""),
    ]);
    assert_eq!(two, ["2 files import each other in a circle:\n    a.rs imports b.rs\n    b.rs imports a.rs"]);
    let through_the_parent = described(&[
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod one;\nmod two;\npub use one::One;\npub use two::Two;"),
        ("a/one.rs", "use super::Two;"),
        ("a/two.rs", ""),
    ]);
    assert_eq!(through_the_parent.len(), 1);
    assert!(through_the_parent[0].ends_with("a/mod.rs imports a/one.rs\n    a/one.rs imports a/mod.rs"));
    let of_three_and_of_two = described(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\nmod e;"),
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "use crate::c::C;"),
        ("c.rs", "use crate::a::A;\nuse crate::d::D;"),
        ("d.rs", "use crate::e::E;"),
        ("e.rs", "use crate::d::D;"),
    ]);
    assert_eq!(of_three_and_of_two.len(), 2);
    let none = described(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;"),
        ("a.rs", "use crate::b::B;\nuse crate::c::C;"),
        ("b.rs", "use crate::c::C;"),
        ("c.rs", ""),
    ]);
    assert!(none.is_empty());
}
