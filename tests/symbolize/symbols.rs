//! `otlpprof symbols`: the store, the packages that fill it, and what a profile needs of it.

use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::libraries::{Library, copy, examine, folder, has};
use assert_cmd::assert::Assert;
use otlpprof_debug_files::{FileId, FileKind, Locator, ObjectIdentity, Places, Quality};
use otlpprof_otlp::wire::{
    Location, Mapping, Profile, ProfilesData, ResourceProfiles, Sample, ScopeProfiles,
};
use otlpprof_testkit::commands::{output_of, text};
use otlpprof_testkit::otlp_fixture::{DURATION, Dictionary, TIME};
use otlpprof_testkit::profile_files::Files;
use otlpprof_testkit::this_build;
use otlpprof_testkit::toolchain::debug_objects;
use serde_json::Value;

/// A store in a temporary folder.
struct Store(tempfile::TempDir);

impl Store {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("store")
    }

    fn path_of(&self, id: &FileId, kind: FileKind) -> PathBuf {
        self.root().join("buildid").join(id.to_string()).join(kind.name())
    }

    fn run(&self, command: &str, arguments: &[&str]) -> Assert {
        let root = self.root();
        let all = [&["symbols", command, "--store", text(&root)], arguments].concat();
        let mut command = assert_cmd::Command::new(this_build::command());
        command.env_remove("DEBUGINFOD_URLS").env("XDG_CACHE_HOME", self.0.path().join("cache"));
        command.args(all).assert()
    }

    /// Adds files, which must succeed.
    fn add(&self, files: &[&Path]) -> String {
        let files: Vec<_> = files.iter().map(|path| text(path)).collect();
        stdout(self.run("add", &files).success())
    }

    fn list(&self) -> Vec<Value> {
        serde_json::from_str(&stdout(self.run("list", &["--format", "json"]).success())).unwrap()
    }

    fn quality(&self, id: &FileId, kind: FileKind) -> Option<Quality> {
        let path = self.path_of(id, kind);
        path.exists().then(|| examine(&path).quality)
    }

    /// Asserts that no file is left that is not complete.
    fn assert_nothing_incomplete(&self) {
        let Ok(entries) = fs::read_dir(self.root().join(".incoming")) else { return };
        let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        assert!(names.iter().all(|name| name == "lock"), "{names:?}");
    }
}

fn stdout(assert: Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

#[test]
fn the_better_file_replaces_the_worse_and_never_the_reverse() {
    use FileKind::{DebugInfo, Executable};
    let directory = tempfile::tempdir().unwrap();
    let library = Library::compile(directory.path(), "better", &[]);
    let id = library.id();
    let store = Store::new();
    store.add(&[&library.stripped]);
    assert_eq!(store.quality(&id, Executable), Some(Quality::DynamicSymbols));
    assert_eq!(store.quality(&id, DebugInfo), None);
    // Only symbols, then debug information, then the whole.
    let symbols = directory.path().join("symbols");
    output_of("objcopy", &["--strip-debug", text(&library.debug), text(&symbols)]);
    store.add(&[&symbols]);
    assert_eq!(store.quality(&id, DebugInfo), Some(Quality::SymbolTable));
    store.add(&[&library.debug]);
    assert_eq!(store.quality(&id, DebugInfo), Some(Quality::DebugInfo));
    let said = store.add(&[&symbols, &library.stripped, &library.debug]);
    assert!(said.contains("0 files added, 0 replaced, 3 there already"), "{said}");
    assert_eq!(fs::read(store.path_of(&id, DebugInfo)).unwrap(), fs::read(&library.debug).unwrap());
    let said = store.add(&[&library.full]);
    assert!(said.contains("0 files added, 1 replaced, 0 there already"), "{said}");
    assert_eq!(fs::read(store.path_of(&id, Executable)).unwrap(), fs::read(&library.full).unwrap());
    assert_eq!(fs::read(store.path_of(&id, DebugInfo)).unwrap(), fs::read(&library.debug).unwrap());
    // A damaged file is none.
    fs::write(store.path_of(&id, DebugInfo), "<html>").unwrap();
    assert!(stdout(store.run("list", &[]).code(1)).contains("damaged"));
    store.add(&[&symbols]);
    assert_eq!(store.quality(&id, DebugInfo), Some(Quality::SymbolTable));
    store.assert_nothing_incomplete();
}

#[test]
fn an_unstripped_file_is_executable_and_debug_file_with_one_copy() {
    use std::os::unix::fs::MetadataExt as _;
    let directory = tempfile::tempdir().unwrap();
    let library = Library::compile(directory.path(), "both", &[]);
    let store = Store::new();
    store.add(&[&library.full]);
    let number = |kind| fs::metadata(store.path_of(&library.id(), kind)).unwrap().ino();
    assert_eq!(number(FileKind::DebugInfo), number(FileKind::Executable));
}

/// Servers of debug files answer with pages of HTML; uploads break off.
#[test]
fn what_is_no_whole_object_is_refused_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let library = Library::compile(directory.path(), "refused", &[]);
    let whole = fs::read(&library.debug).unwrap();
    let store = Store::new();
    let relocatable = directory.path().join("relocatable.o");
    let source = directory.path().join("refused.c");
    output_of("gcc", &["-c", text(&source), "-o", text(&relocatable)]);
    for (name, content) in [
        ("page.debug", b"<!DOCTYPE html><html>404</html>".to_vec()),
        ("empty", Vec::new()),
        ("half", whole[..whole.len() / 2].to_vec()),
        ("head", whole[..64].to_vec()),
        ("short", whole[..20].to_vec()),
        ("no-identity", fs::read(&relocatable).unwrap()),
    ] {
        let file = directory.path().join(name);
        fs::write(&file, content).unwrap();
        let assert = store.run("add", &[text(&file)]);
        let said = stderr(&assert.code(1));
        assert!(said.lines().count() == 1 && said.contains(name), "{name}: {said}");
        assert!(store.list().is_empty(), "{name}");
    }
    // In a folder of a build, a relocatable object is no mistake.
    let build = folder(directory.path().join("build"));
    fs::copy(&relocatable, build.join("relocatable.o")).unwrap();
    let said = store.add(&[&build]);
    assert!(said.contains("1 ELF files are not stored"), "{said}");
    store.run("add", &["/no/such/file"]).code(1);
    store.assert_nothing_incomplete();
}

/// Regression: a file of another class, which belongs to no profiled object, was stored.
#[test]
fn files_of_another_class_or_byte_order_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let library = Library::compile(directory.path(), "classed", &[]);
    let path = |name: &str| directory.path().join(name);
    for (file, name) in [(&library.full, "full-32"), (&library.debug, "debug-32")] {
        Library::convert_to_32_bits(file, &path(name));
    }
    // EI_DATA says big-endian.
    let mut swapped = fs::read(&library.debug).unwrap();
    swapped[5] = 2;
    fs::write(path("swapped"), swapped).unwrap();
    let store = Store::new();
    for (name, form) in [
        ("full-32", "32-bit little-endian"),
        ("debug-32", "32-bit little-endian"),
        ("swapped", "64-bit big-endian"),
    ] {
        let file = path(name);
        let refused = stderr(&store.run("add", &[text(&file)]).code(1));
        let why = format!(
            "otlpprof: {}: a {form} ELF file; only 64-bit little-endian objects are profiled\n",
            file.display()
        );
        assert_eq!(refused, why);
        assert!(store.list().is_empty(), "{name}");
    }
    // Folders and packages of other processors' files are no mistake, if there is anything else.
    let tree = folder(path("tree"));
    copy(&path("full-32"), tree.join("lib32/lib.so"));
    let package = path("package.tar");
    output_of("tar", &["-cf", text(&package), "-C", text(&tree), "."]);
    let refused = stderr(&store.run("add", &[text(&package)]).code(1));
    assert!(refused.lines().count() == 1 && refused.contains("64-bit little-endian"), "{refused}");
    copy(&library.debug, tree.join("lib/lib.debug"));
    output_of("tar", &["-cf", text(&package), "-C", text(&tree), "."]);
    for from in [&tree, &package] {
        let store = Store::new();
        let said = store.add(&[from]);
        assert!(said.contains("1 files added") && said.contains("1 ELF files are not stored"), "{said}");
        assert_eq!(store.list().len(), 1);
        assert_eq!(store.quality(&library.id(), FileKind::DebugInfo), Some(Quality::DebugInfo));
        store.assert_nothing_incomplete();
    }
}

#[test]
fn folders_are_added_with_all_below_and_other_files_are_no_mistake() {
    let directory = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| Library::compile(directory.path(), name, &[]));
    let at = folder(directory.path().join("in"));
    copy(&first.stripped, at.join("lib/first.so"));
    copy(&first.debug, at.join("usr/lib/debug/first.debug"));
    copy(&second.full, at.join("bin/second"));
    fs::write(at.join("README"), "text").unwrap();
    std::os::unix::fs::symlink(&at, at.join("lib/circle")).unwrap();
    let store = Store::new();
    let said = store.add(&[&at]);
    assert!(said.contains("3 files added"), "{said}");
    assert_eq!(store.list().len(), 4);
    assert_eq!(store.quality(&first.id(), FileKind::DebugInfo), Some(Quality::DebugInfo));
    assert_eq!(store.quality(&second.id(), FileKind::DebugInfo), Some(Quality::DebugInfo));
}

/// The debug file may come before its object, and is the object's by name and CRC-32.
#[test]
fn objects_without_build_id_are_stored_by_content_with_their_debug_files() {
    let directory = tempfile::tempdir().unwrap();
    let library = Library::compile(directory.path(), "unnamed", &["-Wl,--build-id=none"]);
    let other = Library::compile(directory.path(), "stranger", &["-Wl,--build-id=none"]);
    let at = folder(directory.path().join("in"));
    let debug = copy(&library.debug, at.join("a.debug"));
    library.link(&at.join("z.so"), &debug);
    copy(&other.debug, at.join("b/a.debug"));
    let store = Store::new();
    let said = store.add(&[&at]);
    assert!(said.contains("2 files added") && said.contains("1 ELF files are not stored"), "{said}");
    let htlhash = examine(&at.join("z.so")).htlhash;
    let id = FileId::of_hash(&htlhash);
    assert_eq!(fs::read(store.path_of(&id, FileKind::DebugInfo)).unwrap(), fs::read(&debug).unwrap());
    let places = Places { store: Some(store.root()), ..Places::default() };
    let identity = ObjectIdentity { htlhash: Some(htlhash), ..ObjectIdentity::default() };
    let found = Locator::new(places.clone()).locate(&identity).unwrap();
    assert_eq!(found.debug, Some(store.path_of(&id, FileKind::DebugInfo)));
    // A wrong file in its place is neither used nor kept.
    copy(&other.debug, store.path_of(&id, FileKind::DebugInfo));
    assert_eq!(Locator::new(places).locate(&identity).unwrap().debug, None);
    store.run("list", &[]).code(1);
    store.add(&[&at]);
    store.run("list", &[]).success();
    store.assert_nothing_incomplete();
}

/// Regression: a debug file that the user named and whose object is nowhere was no mistake, and the reason
/// was not shown.
#[test]
fn a_named_debug_file_without_its_object_is_a_mistake() {
    let directory = tempfile::tempdir().unwrap();
    let library = Library::compile(directory.path(), "alone", &["-Wl,--build-id=none"]);
    let at = folder(directory.path().join("in"));
    let debug = copy(&library.debug, at.join("alone.debug"));
    library.link(&at.join("alone.so"), &debug);
    let store = Store::new();
    let refused = store.run("add", &[text(&debug)]).code(1);
    let why = "no build-id, and no object in the store has a debug link with its name and CRC-32";
    assert_eq!(stderr(&refused), format!("otlpprof: {}: {why}\n", debug.display()));
    assert!(stdout(refused).contains("0 files added"));
    let said = store.add(&[&debug, &at.join("alone.so")]);
    assert!(said.contains("2 files added"), "{said}");
    store.assert_nothing_incomplete();
}

/// A tree of files as a package installs them, and the package's library.
fn installed(directory: &Path, function: &str) -> (PathBuf, Library) {
    let library = Library::compile(directory, function, &[]);
    let tree = folder(directory.join(format!("{function}-tree")));
    copy(&library.stripped, tree.join(format!("usr/lib/lib{function}.so")));
    copy(&library.debug, tree.join(format!("usr/lib/debug/{function}.debug")));
    fs::write(tree.join("usr/lib/readme"), "text").unwrap();
    (tree, library)
}

fn assert_both(store: &Store, library: &Library) {
    for (kind, file) in [(FileKind::DebugInfo, &library.debug), (FileKind::Executable, &library.stripped)] {
        assert_eq!(fs::read(store.path_of(&library.id(), kind)).unwrap(), fs::read(file).unwrap());
    }
    store.assert_nothing_incomplete();
}

#[test]
fn packages_of_debian_in_each_compression() {
    if !has(&["dpkg-deb"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (tree, library) = installed(directory.path(), "packed");
    let control = "Package: packed\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: x\n";
    fs::create_dir(tree.join("DEBIAN")).unwrap();
    fs::write(tree.join("DEBIAN/control"), control).unwrap();
    for compression in ["-Zxz", "-Zgzip", "-Zzstd", "-Znone"] {
        let package = directory.path().join("packed.deb");
        output_of("dpkg-deb", &["--build", "--root-owner-group", compression, text(&tree), text(&package)]);
        let store = Store::new();
        let said = store.add(&[&package]);
        assert!(said.contains("2 files added"), "{compression}: {said}");
        assert_both(&store, &library);
        // A package that is cut anywhere is refused in one line, and nothing is half-written.
        let whole = fs::read(&package).unwrap();
        for part in 1..8 {
            fs::write(&package, &whole[..whole.len() * part / 8]).unwrap();
            let store = Store::new();
            let assert = store.run("add", &[text(&package)]).code(1);
            assert_eq!(stderr(&assert).lines().count(), 1, "{}", stderr(&assert));
            store.run("list", &[]).success();
            store.assert_nothing_incomplete();
        }
    }
}

#[test]
fn packages_of_rpm_in_each_compression() {
    if !has(&["rpmbuild"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (tree, library) = installed(directory.path(), "redhat");
    for payload in ["w9.gzdio", "w6.xzdio", "w3.zstdio"] {
        let spec = directory.path().join("x.spec");
        let text_of = format!(
            "%define _binary_payload {payload}\n%define debug_package %{{nil}}\n\
             %define __os_install_post %{{nil}}\n%define _build_id_links none\n\
             Name: x\nVersion: 1\nRelease: 1\nSummary: x\nLicense: x\nAutoReqProv: no\n\
             %description\nx\n%install\ncp -a {}/usr %{{buildroot}}\n%files\n/usr/*\n",
            text(&tree)
        );
        fs::write(&spec, text_of).unwrap();
        let top = folder(directory.path().join(payload));
        let define = format!("_topdir {}", text(&top));
        output_of("rpmbuild", &["-bb", "--quiet", "--define", &define, text(&spec)]);
        let package = output_of("find", &[text(&top), "-name", "*.rpm"]);
        let store = Store::new();
        let said = store.add(&[Path::new(package.trim())]);
        assert!(said.contains("2 files added"), "{payload}: {said}");
        assert_both(&store, &library);
    }
}

#[test]
fn archives_and_images_with_layers() {
    let directory = tempfile::tempdir().unwrap();
    let (tree, library) = installed(directory.path(), "layered");
    let path = |name: &str| directory.path().join(name);
    let tar = |to: &Path, from: &Path, options: &[&str]| {
        output_of("tar", &[options, &["-cf", text(to), "-C", text(from), "."]].concat());
    };
    // Paths that are too long for a header, in both forms.
    let deep = "a-long-name-of-a-folder/".repeat(12);
    copy(&library.stripped, tree.join(format!("{deep}lib.so")));
    for options in [&["--format=gnu"][..], &["--format=posix"], &["-z"], &["-J"], &["--zstd"]] {
        let archive = path("archive");
        tar(&archive, &tree, options);
        let store = Store::new();
        store.add(&[&archive]);
        assert_both(&store, &library);
    }
    // An image as docker writes it: an archive of layers, which may be compressed.
    let image = folder(path("image/blobs/sha256"));
    tar(&image.join("0a"), &tree.join("usr/lib/debug"), &["-z"]);
    tar(&image.join("0b"), &tree.join("usr/lib"), &["--exclude=./debug"]);
    fs::write(image.join("0c"), "{\"layers\": []}").unwrap();
    for options in [&[][..], &["-z"]] {
        let archive = path("image.tar");
        tar(&archive, &path("image"), options);
        let store = Store::new();
        store.add(&[&archive]);
        assert_both(&store, &library);
    }
    // From standard input.
    let store = Store::new();
    let root = store.root();
    let mut command = assert_cmd::Command::new(this_build::command());
    command.args(["symbols", "add", "-", "--store", text(&root)]);
    command.write_stdin(fs::read(path("image.tar")).unwrap()).assert().success();
    assert_both(&store, &library);
}

/// Debian's own packages of the C library and its debug files.
#[test]
fn real_packages_of_debian_fill_the_store() {
    let Some(objects) = debug_objects() else { return };
    let store = Store::new();
    let said = store.add(&[&objects.join("libc.deb"), &objects.join("libc-dbg.deb")]);
    let id = ObjectIdentity { build_id: examine(&objects.join("libc.so")).build_id, ..Default::default() };
    let id = id.file_id().unwrap();
    for (kind, file) in [(FileKind::DebugInfo, "libc.debug"), (FileKind::Executable, "libc.so")] {
        let stored = fs::read(store.path_of(&id, kind)).unwrap();
        assert!(stored == fs::read(objects.join(file)).unwrap(), "{file}: {said}");
    }
    assert!(store.list().len() > 100, "{said}");
}

/// The path of an object whose frames are not machine code of the object.
const INTERPRETER: &str = "/opt/app/interpreter";

/// A profile with frames of objects: by mapping, only by text, by content, one that has names, and one whose
/// code is not machine code of an object.
fn profile(library: &Library, unknown: &str, anonymous: &Path) -> ProfilesData {
    let mut tables = Dictionary::new();
    let mapped = |tables: &mut Dictionary, frame_type: &str, path: &str, key: &str, value: &str| {
        let frame_type = tables.text("profile.frame.type", frame_type);
        let attribute = tables.text(key, value);
        let filename_strindex = tables.string(path);
        tables.0.mapping_table.push(Mapping {
            memory_limit: 0x10_0000,
            filename_strindex,
            attribute_indices: vec![attribute],
            ..Default::default()
        });
        let mapping_index = tables.0.mapping_table.len() as i32 - 1;
        tables.0.location_table.push(Location {
            mapping_index,
            address: 0x1010,
            attribute_indices: vec![frame_type],
            ..Default::default()
        });
        tables.0.location_table.len() as i32 - 1
    };
    let gnu = "process.executable.build_id.gnu";
    let htlhash = "process.executable.build_id.htlhash";
    let id = library.id().to_string();
    let hash = examine(anonymous).htlhash.to_string();
    let locations = vec![
        mapped(&mut tables, "native", "/opt/app/lib.so", gnu, &id),
        mapped(&mut tables, "native", "/opt/app/anonymous.so", htlhash, &hash),
        mapped(&mut tables, "jvm", INTERPRETER, gnu, "aabb"),
        tables.frame("native", &format!("{unknown}.<remote>(0x1234)"), "", 0),
        tables.frame("native", "a_function", "a.c", 3),
    ];
    let sample = Sample { stack_index: tables.stack(locations), values: vec![1], ..Default::default() };
    let profile = Profile {
        sample_type: tables.value_type("samples", "count"),
        period_type: tables.value_type("cpu", "nanoseconds"),
        period: 1,
        time_unix_nano: TIME,
        duration_nano: DURATION,
        samples: vec![sample],
        ..Default::default()
    };
    let scope_profiles = vec![ScopeProfiles { profiles: vec![profile], ..Default::default() }];
    ProfilesData {
        resource_profiles: vec![ResourceProfiles { scope_profiles, ..Default::default() }],
        dictionary: Some(tables.0),
    }
}

#[test]
fn check_names_what_a_profile_needs_and_what_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let library = Library::compile(directory.path(), "checked", &[]);
    let anonymous = Library::compile(directory.path(), "unmarked", &["-Wl,--build-id=none"]);
    let unknown = "00112233445566778899aabbccddeeff00112233";
    let files = Files::new();
    let file = files.add("p.otlp", &[profile(&library, unknown, &anonymous.full)]);
    let store = Store::new();
    let check = |arguments: &[&str]| {
        let all = [&["--not-this-machine", "--no-debuginfod", "--format", "json", &file], arguments].concat();
        let assert = store.run("check", &all);
        let code = assert.get_output().status.code();
        let objects: Vec<Value> = serde_json::from_str(&stdout(assert)).unwrap();
        (code, objects)
    };
    let (code, objects) = check(&[]);
    assert_eq!((code, objects.len()), (Some(1), 3), "{objects:?}");
    assert!(objects.iter().all(|object| object["missing"].is_string()), "{objects:?}");
    store.add(&[&library.debug, &anonymous.full]);
    let (code, objects) = check(&[]);
    assert_eq!(code, Some(1));
    let of = |path: &str| objects.iter().find(|object| object["path"] == path).expect(path);
    let debug = store.path_of(&library.id(), FileKind::DebugInfo);
    assert_eq!(of("/opt/app/lib.so")["debug"], text(&debug));
    assert_eq!(of("/opt/app/lib.so")["quality"], "debug information");
    assert_eq!(of("/opt/app/anonymous.so")["quality"], "debug information");
    let missing = objects.iter().find(|object| object["build_id"] == unknown).unwrap();
    let why = missing["missing"].as_str().unwrap();
    assert!(why.contains(unknown) && why.contains(text(&store.root())), "{why}");
    // Regression: an object was named of which no frame can get a name from a file.
    assert!(objects.iter().all(|object| object["path"] != INTERPRETER), "{objects:?}");
    // In words, for people.
    let words = stdout(store.run("check", &["--not-this-machine", "--no-debuginfod", &file]).code(1));
    assert!(words.contains("files of 2 are found"), "{words}");
    // A folder given by --path.
    let empty = Store::new();
    let path = text(directory.path());
    let arguments = ["--not-this-machine", "--no-debuginfod", "--path", path, &file];
    assert!(stdout(empty.run("check", &arguments).code(1)).contains("files of 2 are found"));
    let mistake = empty.run("check", &["--path", "/no/such/folder", &file]).code(2);
    assert_eq!(stderr(&mistake).lines().count(), 1);
}

#[test]
fn prune_removes_what_is_damaged_or_unused() {
    let directory = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "new"].map(|name| Library::compile(directory.path(), name, &[]));
    let store = Store::new();
    store.add(&[&old.debug, &new.debug]);
    let age = |library: &Library, days: u64| {
        let time = SystemTime::now() - Duration::from_secs(days * 86_400);
        let file = File::open(store.path_of(&library.id(), FileKind::DebugInfo)).unwrap();
        file.set_times(FileTimes::new().set_accessed(time).set_modified(time)).unwrap();
    };
    age(&old, 40);
    age(&new, 3);
    let said = stdout(store.run("prune", &["--unused-for", "30d", "--dry-run"]).success());
    assert!(said.contains("1 files would be removed"), "{said}");
    assert_eq!(store.list().len(), 2);
    // A search uses the file.
    let places = Places { store: Some(store.root()), ..Places::default() };
    assert!(Locator::new(places).locate(&old.identity()).is_ok());
    assert!(stdout(store.run("prune", &["--unused-for", "30d"]).success()).starts_with("0 files removed"));
    age(&old, 40);
    store.run("prune", &["--unused-for", "30d"]).success();
    assert_eq!(store.quality(&old.id(), FileKind::DebugInfo), None);
    assert!(!store.path_of(&old.id(), FileKind::DebugInfo).parent().unwrap().exists());
    // By size, the longest unused first.
    store.add(&[&old.debug]);
    age(&new, 9);
    let size = fs::metadata(&old.debug).unwrap().len().to_string();
    store.run("prune", &["--max-size", &size]).success();
    assert_eq!(store.quality(&new.id(), FileKind::DebugInfo), None);
    assert_eq!(store.quality(&old.id(), FileKind::DebugInfo), Some(Quality::DebugInfo));
    fs::write(store.path_of(&old.id(), FileKind::DebugInfo), "damaged").unwrap();
    store.run("prune", &[]).success();
    assert!(store.list().is_empty());
}
