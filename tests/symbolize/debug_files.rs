//! The locator of files of objects: identities, places, ranks, companions, and files that are not used.

use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};

use crate::libraries::{Library, copy, examine, folder, has, sharing_by_dwz};
use otlpprof_debug_files::{Locator, NotLocated, ObjectFiles, ObjectIdentity, Places, Quality};
use otlpprof_elf::file::ElfFile;
use otlpprof_elf::source::Source as _;
use otlpprof_testkit::commands::{output_of, text};

fn of_paths<P: AsRef<Path>>(paths: &[P]) -> Places {
    Places { paths: paths.iter().map(|path| path.as_ref().to_owned()).collect(), ..Places::default() }
}

fn of_roots<P: AsRef<Path>>(roots: &[P]) -> Places {
    Places { debug_roots: roots.iter().map(|path| path.as_ref().to_owned()).collect(), ..Places::default() }
}

fn locate(places: &Places, identity: &ObjectIdentity) -> Result<ObjectFiles, NotLocated> {
    Locator::new(places.clone()).locate(identity)
}

fn located(places: &Places, identity: &ObjectIdentity) -> ObjectFiles {
    locate(places, identity).unwrap_or_else(|error| panic!("{error}"))
}

/// The identity of an object without a build-id that was loaded from a path.
fn by_content(file: &Path, path: Option<&Path>) -> ObjectIdentity {
    let path = path.map(|path| text(path).to_owned());
    ObjectIdentity { build_id: None, htlhash: Some(examine(file).htlhash), path }
}

#[test]
fn a_stripped_file_never_hides_a_fuller_one() {
    let directory = tempfile::tempdir().unwrap();
    let library = Library::compile(directory.path(), "ranked", &[]);
    let [first, second, third] = ["1", "2", "3"].map(|name| folder(directory.path().join("in").join(name)));
    let stripped = copy(&library.stripped, first.join("deep/er/libranked.so"));
    let debug = copy(&library.debug, second.join("libranked.so"));
    let found = located(&of_paths(&[&first, &second]), &library.identity());
    assert_eq!((found.quality, found.debug), (Quality::DebugInfo, Some(debug)));
    assert_eq!(found.executable, Some(stripped.clone()), "the stripped file has the code");
    let only_stripped = located(&of_paths(&[&first]), &library.identity());
    assert_eq!((only_stripped.quality, only_stripped.debug), (Quality::DynamicSymbols, None));
    assert_eq!(only_stripped.executable, Some(stripped));
    // An object with its debug information in it is both.
    let full = copy(&library.full, third.join("full.so"));
    let found = located(&of_paths(&[&first, &third]), &library.identity());
    assert_eq!((found.debug, found.executable), (Some(full.clone()), Some(full)));
}

#[test]
fn build_id_trees_are_searched_below_roots_and_paths() {
    let directory = tempfile::tempdir().unwrap();
    let library = Library::compile(directory.path(), "in_a_tree", &[]);
    let id = library.id().to_string();
    let root = directory.path().join("root");
    let place = root.join(format!(".build-id/{}/{}.debug", &id[..2], &id[2..]));
    copy(&library.debug, place.clone());
    assert_eq!(located(&of_roots(&[&root]), &library.identity()).debug, Some(place.clone()));
    assert_eq!(located(&of_paths(&[&root]), &library.identity()).debug, Some(place.clone()));
    // A tree may hold links, as of kernels' debug packages.
    let elsewhere = copy(&library.debug, root.join("lib/x.debug"));
    fs::remove_file(&place).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &place).unwrap();
    assert_eq!(located(&of_roots(&[&root]), &library.identity()).debug, Some(place.clone()));
    // A file in the place of another build-id is not the object's.
    let other = Library::compile(directory.path(), "another", &[]);
    fs::remove_file(&place).unwrap();
    copy(&other.debug, place.clone());
    let error = locate(&of_roots(&[&root]), &library.identity()).unwrap_err().to_string();
    assert!(error.contains(&id) && error.contains(&other.id().to_string()), "{error}");
    assert!(error.contains(text(&place)) && !error.contains('\n'), "{error}");
}

#[test]
fn a_wrong_debug_file_of_the_same_name_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let (right, wrong) =
        (Library::compile(directory.path(), "right", &[]), Library::compile(directory.path(), "wrong", &[]));
    let at = folder(directory.path().join("opt"));
    let named = copy(&right.debug, at.join("lib.debug"));
    right.link(&at.join("lib.so"), &named);
    fs::remove_file(&named).unwrap();
    copy(&wrong.debug, named.clone());
    let found = located(&of_paths(&[at.join("lib.so")]), &right.identity());
    assert_eq!((found.quality, &found.debug), (Quality::DynamicSymbols, &None));
    assert!(found.problems[0].contains("lib.debug"), "{:?}", found.problems);
    // The right one, elsewhere, is.
    let elsewhere = copy(&right.debug, directory.path().join("elsewhere/lib.debug"));
    let places = of_paths(&[at.join("lib.so"), directory.path().join("elsewhere")]);
    let found = located(&places, &right.identity());
    assert_eq!((found.debug, found.problems), (Some(elsewhere), Vec::new()));
}

/// PyPI's JDKs and lld's defaults have no build-id.
#[test]
fn objects_without_build_id_are_known_by_content_and_their_debug_files_by_checksum() {
    let directory = tempfile::tempdir().unwrap();
    let library = Library::compile(directory.path(), "anonymous", &["-Wl,--build-id=none"]);
    let other = Library::compile(directory.path(), "other", &["-Wl,--build-id=none"]);
    let at = folder(directory.path().join("opt/lib"));
    let debug = copy(&library.debug, directory.path().join("libanonymous.debuginfo"));
    let object = at.join("libanonymous.so");
    library.link(&object, &debug);
    assert_eq!(examine(&object).build_id, None);
    let root = folder(directory.path().join("root"));
    let below_root = root.join(at.strip_prefix("/").unwrap()).join("libanonymous.debuginfo");
    for place in [at.join("libanonymous.debuginfo"), at.join(".debug/libanonymous.debuginfo"), below_root] {
        let identity = by_content(&object, Some(&object));
        let places = Places { machine: true, ..of_roots(&[&root]) };
        let missing = located(&places, &identity);
        assert_eq!((missing.quality, missing.debug), (Quality::DynamicSymbols, None));
        assert!(missing.problems[0].contains("libanonymous.debuginfo"), "{:?}", missing.problems);
        copy(&other.debug, place.clone());
        assert_eq!(located(&places, &identity).debug, None, "a wrong file at {}", place.display());
        copy(&debug, place.clone());
        let found = located(&places, &identity);
        assert_eq!((found.debug, found.quality), (Some(place.clone()), Quality::DebugInfo));
        assert_eq!(found.executable, Some(object.clone()));
        fs::remove_file(&place).unwrap();
    }
    // By the folders to search, wherever the files are in them.
    let found = located(&of_paths(&[directory.path()]), &by_content(&object, None));
    assert_eq!(found.debug, Some(debug));
    // Another object at the profile's path is not the profile's.
    let machine = Places { machine: true, ..Places::default() };
    let error = locate(&machine, &by_content(&other.stripped, Some(&object))).unwrap_err();
    assert!(matches!(error, NotLocated::NotFound { rejected: Some(_), .. }), "{error}");
}

#[test]
fn an_object_that_is_found_by_content_leads_to_files_of_its_build_id() {
    let directory = tempfile::tempdir().unwrap();
    let library = Library::compile(directory.path(), "widened", &[]);
    let at = folder(directory.path().join("in"));
    copy(&library.stripped, at.join("lib.so"));
    let debug = copy(&library.debug, at.join("unrelated-name"));
    let found = located(&of_paths(&[&at]), &by_content(&library.stripped, None));
    assert_eq!(found.debug, Some(debug));
}

#[test]
fn debug_files_beside_the_object_may_have_other_endings() {
    let directory = tempfile::tempdir().unwrap();
    let library = Library::compile(directory.path(), "beside", &[]);
    let at = folder(directory.path().join("in"));
    let object = copy(&library.stripped, at.join("libbeside.so"));
    let identity = ObjectIdentity { path: Some(text(&object).to_owned()), ..library.identity() };
    let machine = Places { machine: true, ..Places::default() };
    for name in ["libbeside.dbg", "libbeside.so.dbg", "libbeside.debuginfo", "libbeside.so.debug"] {
        assert_eq!(located(&machine, &identity).debug, None);
        let debug = copy(&library.debug, at.join(name));
        assert_eq!(located(&machine, &identity).debug, Some(debug.clone()), "{name}");
        fs::remove_file(debug).unwrap();
    }
    let root = directory.path().join("root");
    let at_root = copy(&library.debug, root.join(at.strip_prefix("/").unwrap()).join("libbeside.so"));
    assert_eq!(located(&of_roots(&[&root]), &identity).debug, Some(at_root));
}

#[test]
fn truncated_files_and_other_files_are_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let library = Library::compile(directory.path(), "damaged", &[]);
    let id = library.id().to_string();
    let place = directory.path().join(format!("root/.build-id/{}/{}.debug", &id[..2], &id[2..]));
    let whole = fs::read(&library.debug).unwrap();
    copy(&library.debug, place.clone());
    let places = of_roots(&[directory.path().join("root")]);
    assert!(locate(&places, &library.identity()).is_ok());
    let mut contents: Vec<Vec<u8>> = (0..whole.len()).step_by(97).map(|len| whole[..len].to_vec()).collect();
    contents.push(b"<!DOCTYPE html><html><body>Not found</body></html>".to_vec());
    for content in contents {
        fs::write(&place, &content).unwrap();
        let error = locate(&places, &library.identity()).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
    }
    // A pipe is not opened.
    fs::remove_file(&place).unwrap();
    output_of("mkfifo", &[text(&place)]);
    assert!(locate(&places, &library.identity()).is_err());
    assert!(locate(&of_paths(&[directory.path().join("root")]), &library.identity()).is_err());
}

/// Regression: a file of 32 bits with the object's build-id was used as its debug file.
#[test]
fn a_file_of_another_class_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let library = Library::compile(directory.path(), "classed", &[]);
    let at = folder(directory.path().join("in"));
    let of_32_bits = at.join("a.debug");
    Library::convert_to_32_bits(&library.debug, &of_32_bits);
    let error = locate(&of_paths(&[&at]), &library.identity()).unwrap_err().to_string();
    assert!(error.contains(text(&of_32_bits)) && error.contains("32-bit"), "{error}");
    // Neither at the place of a debug link, nor before the right file.
    let object = at.join("lib.so");
    library.link(&object, &of_32_bits);
    let found = located(&of_paths(&[&at]), &library.identity());
    assert_eq!((found.executable, found.debug), (Some(object), None));
    let right = copy(&library.debug, at.join("z.debug"));
    assert_eq!(located(&of_paths(&[&at]), &library.identity()).debug, Some(right));
}

#[test]
fn an_object_without_identity_is_not_located_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let library = Library::compile(directory.path(), "nameless", &[]);
    let path = Some(text(&library.full).to_owned());
    let identity = ObjectIdentity { path, ..ObjectIdentity::default() };
    let places = Places { machine: true, ..of_paths(&[directory.path()]) };
    let error = locate(&places, &identity).unwrap_err();
    assert!(matches!(error, NotLocated::Identity(_)), "{error}");
}

#[test]
fn supplementary_files_are_found_by_build_id() {
    assert_supplementary_file_is_found(&[]);
}

/// Regression: dwz gives supplementary files of DWARF 5 a checksum in `.debug_sup` in place of a build-id.
#[test]
fn supplementary_files_of_dwarf_5_are_found_by_checksum() {
    assert_supplementary_file_is_found(&["-5"]);
}

/// Asserts that the file is found that dwz makes with these options.
fn assert_supplementary_file_is_found(options: &[&str]) {
    if !has(&["dwz"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let ([first, second], common) = sharing_by_dwz(directory.path(), options);
    // At the place that the link names, relative to the debug file.
    let root = directory.path().join("root");
    let debug = copy(&first.debug, root.join("lib/first.debug"));
    let places = of_paths(&[&debug]);
    let missing = located(&places, &first.identity());
    assert_eq!((&missing.supplementary, missing.problems.len()), (&None, 1), "{missing:?}");
    let at_link = copy(&common, root.join(".dwz/common.debug"));
    let found = located(&places, &first.identity());
    let real = found.supplementary.unwrap().canonicalize().unwrap();
    assert_eq!((real, found.problems), (at_link.canonicalize().unwrap(), Vec::new()));
    // Another file there is not used; the right one is found wherever it is.
    copy(&second.debug, at_link);
    assert_eq!(located(&places, &first.identity()).supplementary, None);
    let elsewhere = copy(&common, directory.path().join("elsewhere/any-name"));
    let places = of_paths(&[debug.as_path(), elsewhere.parent().unwrap()]);
    assert_eq!(located(&places, &first.identity()).supplementary, Some(elsewhere));
}

/// The recipe of GDB's manual, "MiniDebugInfo".
#[test]
fn mini_debug_info_is_decompressed_where_there_is_no_symbol_table() {
    if !has(&["xz"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let library = Library::compile(directory.path(), "mini", &[]);
    let symbols = directory.path().join("symbols");
    output_of("objcopy", &["-S", "--keep-symbol=inner_mini", text(&library.debug), text(&symbols)]);
    output_of("xz", &["-k", text(&symbols)]);
    let object = directory.path().join("in/lib.so");
    let stripped = copy(&library.stripped, object);
    let section = format!(".gnu_debugdata={}.xz", text(&symbols));
    output_of("objcopy", &["--add-section", &section, text(&stripped)]);
    let places = of_paths(&[directory.path().join("in")]);
    let found = located(&places, &library.identity());
    assert_eq!(found.quality, Quality::MiniSymbols);
    assert_eq!(found.mini.as_deref(), Some(&fs::read(&symbols).unwrap()[..]));
    // A damaged section is a problem of its own.
    fs::write(format!("{}.xz", text(&symbols)), b"\xfd7zXZ\0 no more").unwrap();
    let stripped = copy(&library.stripped, stripped);
    output_of("objcopy", &["--add-section", &section, text(&stripped)]);
    let found = located(&places, &library.identity());
    assert_eq!(found.mini, None);
    assert!(found.problems[0].contains(".gnu_debugdata"), "{:?}", found.problems);
    // With a symbol table it is not needed.
    copy(&library.debug, directory.path().join("in/lib.debug"));
    let found = located(&places, &library.identity());
    assert_eq!((found.mini, found.quality), (None, Quality::DebugInfo));
}

/// The debug files of Fedora's packages have their object's segments, whose offsets mean nothing in them.
#[test]
fn debug_files_of_elfutils_strip_have_their_build_id() {
    if !has(&["eu-strip"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let library = Library::compile(directory.path(), "eu", &["-Wl,-z,separate-code"]);
    let at = folder(directory.path().join("in"));
    let (object, debug) = (at.join("lib.so"), at.join("lib.debug"));
    output_of("eu-strip", &["-f", text(&debug), "-o", text(&object), text(&library.full)]);
    let found = located(&of_paths(&[&at]), &library.identity());
    assert_eq!((found.debug, found.executable), (Some(debug), Some(object)));
}

#[test]
fn split_units_and_packages_are_found() {
    if !has(&["llvm-dwp-19"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let library = Library::compile(directory.path(), "split", &["-gsplit-dwarf", "-gdwarf-5", "-c"]);
    let object = folder(directory.path().join("in")).join("lib.so");
    let library_at = text(&library.full).to_owned();
    output_of("gcc", &["-shared", "-Wl,--build-id=sha1", &library_at, "-o", text(&object)]);
    let dwo = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    let dwo: PathBuf = dwo.into_iter().find(|path| path.extension().is_some_and(|end| end == "dwo")).unwrap();
    let build_id = examine(&object).build_id;
    let identity = ObjectIdentity { build_id, ..ObjectIdentity::default() };
    let locator = Locator::new(of_paths(&[directory.path()]));
    let files = locator.locate(&identity).unwrap();
    assert_eq!((files.quality, &files.package), (Quality::DebugInfo, &None));
    let units = locator.split_units(&files);
    let name = dwo.file_name().unwrap().to_str().unwrap();
    let id = id_of(&dwo);
    let length = |found: Option<otlpprof_elf::source::FileSource>| found.map(|source| source.len());
    let expected = Some(fs::metadata(&dwo).unwrap().len());
    assert_eq!(length(units.find(text(&dwo), None, id)), expected, "at its recorded path");
    assert_eq!(length(units.find(&format!("gone/{name}"), Some("/no/such/folder"), id)), expected, "by name");
    assert_eq!(length(units.find(name, None, id ^ 1)), None, "of another compilation");
    let of_32_bits = folder(directory.path().join("other-class")).join(name);
    Library::convert_to_32_bits(&dwo, &of_32_bits);
    assert_eq!(length(units.find(text(&of_32_bits), None, id)), expected, "by name, and not of 32 bits");
    let package = object.with_file_name("lib.so.dwp");
    output_of("llvm-dwp-19", &[text(&dwo), "-o", text(&package)]);
    assert_eq!(located(&of_paths(&[directory.path()]), &identity).package, Some(package));
}

/// The id of a split unit, by readelf.
fn id_of(dwo: &Path) -> u64 {
    let listing = output_of("readelf", &["--debug-dump=info", text(dwo)]);
    let id = listing.lines().find_map(|line| line.split("DWO ID:").nth(1)).expect("an id").trim();
    u64::from_str_radix(id.trim_start_matches("0x"), 16).unwrap()
}

#[test]
fn the_index_of_a_folder_is_kept_and_a_changed_file_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let [old, new] = ["the_one", "another"].map(|name| Library::compile(directory.path(), name, &[]));
    let (at, cache) = (folder(directory.path().join("in")), directory.path().join("cache"));
    let places = Places { cache: Some(cache.clone()), ..of_paths(&[&at]) };
    let file = copy(&old.debug, at.join("some.debug"));
    assert!(locate(&places, &old.identity()).is_ok());
    let kept: Vec<_> = fs::read_dir(cache.join("paths")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(kept.len(), 1);
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    // A file of the same length and time is not read again: the index still has the old identity.
    let mut other = fs::read(&new.debug).unwrap();
    other.resize(fs::metadata(&file).unwrap().len() as usize, 0);
    fs::write(&file, &other).unwrap();
    File::options().write(true).open(&file).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
    assert!(locate(&places, &new.identity()).is_err());
    let error = locate(&places, &old.identity()).unwrap_err().to_string();
    assert!(error.contains("some.debug"), "the file is checked before it is used: {error}");
    // Another time, or a damaged index, and it is.
    fs::write(&kept[0], b"otlpidx1 damaged").unwrap();
    assert!(locate(&places, &new.identity()).is_ok());
    copy(&old.debug, file);
    assert!(locate(&places, &old.identity()).is_ok());
    assert!(locate(&places, &new.identity()).is_err());
}

#[test]
fn links_in_circles_end_and_missing_folders_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let library = Library::compile(directory.path(), "circle", &[]);
    let at = folder(directory.path().join("in"));
    std::os::unix::fs::symlink(&at, at.join("again")).unwrap();
    std::os::unix::fs::symlink("/no/such/file", at.join("dangling")).unwrap();
    let debug = copy(&library.debug, at.join("x"));
    let locator = Locator::new(of_paths(&[at, directory.path().join("missing")]));
    assert_eq!(locator.locate(&library.identity()).unwrap().debug, Some(debug));
    assert_eq!(locator.problems().len(), 1);
    assert!(locator.problems()[0].contains("missing"));
}

#[test]
fn real_debug_files_of_debian_belong_to_their_libraries() {
    let Some(objects) = otlpprof_testkit::toolchain::debug_objects() else { return };
    for name in ["libc", "libjvm"] {
        let library = objects.join(format!("{name}.so"));
        let identity = ObjectIdentity { build_id: examine(&library).build_id, ..ObjectIdentity::default() };
        let found = located(&of_paths(&[&objects]), &identity);
        assert_eq!(found.quality, Quality::DebugInfo);
        assert_eq!(found.executable, Some(library));
        assert_eq!(found.debug, Some(objects.join(format!("{name}.debug"))));
        let debug = fs::read(found.debug.unwrap()).unwrap();
        assert!(ElfFile::parse(&debug[..]).unwrap().section(".debug_info").unwrap().is_some());
    }
}
