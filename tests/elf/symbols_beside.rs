//! Names of functions that a stripped library lacks: from its debug file and from MiniDebugInfo, compared
//! with the symbols of the library before it was stripped.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use otlpprof_core::address::{ElfVaddr, RuntimeAddr};
use otlpprof_elf::build_id;
use otlpprof_elf::mini_debug_info::{MAX_LEN, MiniDebugInfoError, decompress};
use otlpprof_elf::objects::{ObjectDetails, ObjectRegistry};
use otlpprof_elf::symbols::{Preparation, Symbolizer};
use otlpprof_testkit::commands::output_of;
use otlpprof_testkit::elf_objects::{Library, compile_library};
use otlpprof_testkit::separate_symbols::{
    add_mini_debug_info, append_hole, declare_endless_symbols, strip, strip_with_link,
    strip_with_mini_debug_info, write_debug_file, xz,
};

/// A library of which one function is exported and three are not. An exported function without a size, as
/// assembly may have it, lies before one of these.
const SOURCE: &str = r#"
    static __attribute__((noinline)) int hidden(int value) { return value * 3 + 1; }
    static __attribute__((noinline)) int nested(int value) { return hidden(value) + hidden(value + 2); }
    int exported(int value) { return nested(value + 1) + hidden(value); }
    __asm__(".section .text.after, \"ax\"\n.globl unsized\n.type unsized, @function\nunsized: nop; nop; ret\n"
            ".type after_unsized, @function\nafter_unsized: nop; nop; ret\n"
            ".size after_unsized, . - after_unsized\n.text\n");
"#;

struct Case {
    folder: tempfile::TempDir,
    /// The library with all symbols. Not the one that is loaded.
    whole: PathBuf,
    /// The path of the library to load.
    library: PathBuf,
    /// The folder of installed debug files.
    debug_files: PathBuf,
}

impl Case {
    fn new(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (whole, installed, debug_files) =
            (folder.path().join("whole"), folder.path().join("lib"), folder.path().join("debug"));
        for created in [&whole, &installed, &debug_files] {
            fs::create_dir(created).unwrap();
        }
        let whole = compile_library(&whole, "libbeside.so", SOURCE, flags);
        Self { whole, library: installed.join("libbeside.so"), debug_files, folder }
    }

    fn with_build_id() -> Self {
        Self::new(&["-Wl,--build-id=sha1", "-g"])
    }

    fn without_build_id() -> Self {
        Self::new(&["-Wl,--build-id=none", "-g"])
    }

    /// Another library's debug file, with functions at the same addresses.
    fn wrong_debug_file(&self, flags: &[&str]) -> PathBuf {
        let folder = self.folder.path().join("other");
        fs::create_dir(&folder).unwrap();
        let source = SOURCE.replace("* 3", "* 5").replace("hidden", "wrong");
        let other = compile_library(&folder, "libbeside.so", &source, flags);
        let debug_file = folder.join("libbeside.debug");
        write_debug_file(&other, &debug_file);
        debug_file
    }

    /// The place of the debug file by the library's build-id.
    fn by_build_id(&self) -> PathBuf {
        let id = build_id::of_file(&self.whole).unwrap().to_string();
        let folder = self.debug_files.join(".build-id").join(&id[..2]);
        fs::create_dir_all(&folder).unwrap();
        folder.join(format!("{}.debug", &id[2..]))
    }

    /// Loads the library and names all its functions: at once, and after its symbols have been read ahead.
    fn names(&self) -> BTreeMap<&'static str, Option<String>> {
        self.names_from(Some(self.debug_files.clone()))
    }

    fn names_from(&self, debug_files: Option<PathBuf>) -> BTreeMap<&'static str, Option<String>> {
        let library = Library::open(&self.library);
        let details = details_of(library.symbol("exported"));
        let addresses = addresses(&self.whole);
        let names_of = |symbolizer: &Symbolizer| -> BTreeMap<_, _> {
            let name = |function: &'static str| {
                let symbol = symbolizer.symbol(&details, ElfVaddr(addresses[function] + 1));
                (function, symbol.map(|symbol| symbol.name.clone()))
            };
            ["exported", "hidden", "nested", "unsized", "after_unsized"].map(name).into()
        };
        let at_once = names_of(&Symbolizer::new(debug_files.clone()));
        let symbolizer = Symbolizer::new(debug_files);
        let prepare = || symbolizer.prepare(&details, ElfVaddr(addresses["exported"]));
        assert_eq!(prepare(), Preparation::Requested, "there may be symbols beside the library");
        assert_eq!(prepare(), Preparation::Due);
        assert!(symbolizer.prepare_next());
        assert!(!symbolizer.prepare_next(), "it was requested once");
        assert_eq!(prepare(), Preparation::Done);
        assert_eq!(names_of(&symbolizer), at_once);
        at_once
    }
}

fn details_of(pc: u64) -> Arc<ObjectDetails> {
    let registry = ObjectRegistry::new();
    let index = registry.refresh().map.find(RuntimeAddr(pc)).expect("an object").index;
    registry.details(index).unwrap()
}

/// The addresses of the functions, by nm.
fn addresses(library: &Path) -> BTreeMap<String, u64> {
    let listing = output_of("nm", &["--defined-only", library.to_str().unwrap()]);
    let line = |line: &str| {
        let mut fields = line.split(' ');
        let (address, name) = (fields.next()?, fields.nth(1)?);
        Some((name.to_owned(), u64::from_str_radix(address, 16).ok()?))
    };
    listing.lines().filter_map(line).collect()
}

/// The names of a library whose functions all have one.
fn all_named() -> BTreeMap<&'static str, Option<String>> {
    let name = |function: &'static str| (function, Some(function.to_owned()));
    ["exported", "hidden", "nested", "unsized", "after_unsized"].map(name).into()
}

/// Checks that functions which are not exported have no names.
fn assert_exported_alone(names: &BTreeMap<&'static str, Option<String>>) {
    assert_eq!(names["exported"].as_deref(), Some("exported"));
    for hidden in ["hidden", "nested"] {
        assert_eq!(names[hidden], None, "{names:?}");
    }
}

#[test]
fn a_stripped_library_has_the_names_of_its_exported_functions() {
    let case = Case::with_build_id();
    strip(&case.whole, &case.library);
    assert_exported_alone(&case.names());
}

#[test]
fn mini_debug_info_adds_the_functions_that_are_not_exported() {
    for case in [Case::with_build_id(), Case::without_build_id()] {
        strip_with_mini_debug_info(&case.whole, &case.library);
        assert_eq!(case.names(), all_named());
        assert_eq!(case.names_from(None), all_named(), "no folder of debug files is needed");
    }
}

#[test]
fn a_debug_file_is_found_by_build_id() {
    let case = Case::with_build_id();
    strip(&case.whole, &case.library);
    write_debug_file(&case.whole, &case.by_build_id());
    assert_eq!(case.names(), all_named());
    assert_exported_alone(&case.names_from(None));
}

#[test]
fn a_debug_file_is_found_by_its_link() {
    for case in [Case::with_build_id(), Case::without_build_id()] {
        let beside = case.library.with_file_name("libbeside.debug");
        write_debug_file(&case.whole, &beside);
        strip_with_link(&case.whole, &beside, &case.library, &[]);
        assert_eq!(case.names(), all_named(), "beside the library");
        assert_exported_alone(&case.names_from(None));
        let below = case.library.with_file_name(".debug");
        let installed = case.debug_files.join(case.library.parent().unwrap().strip_prefix("/").unwrap());
        let mut at = beside;
        for folder in [below, installed] {
            fs::create_dir_all(&folder).unwrap();
            let next = folder.join("libbeside.debug");
            fs::rename(&at, &next).unwrap();
            assert_eq!(case.names(), all_named(), "{}", next.display());
            at = next;
        }
        fs::remove_file(at).unwrap();
        assert_exported_alone(&case.names());
    }
}

#[test]
fn a_debug_file_of_another_library_is_not_used() {
    // At the place of the build-id.
    let case = Case::with_build_id();
    strip(&case.whole, &case.library);
    fs::copy(case.wrong_debug_file(&["-Wl,--build-id=sha1", "-g"]), case.by_build_id()).unwrap();
    assert_exported_alone(&case.names());
    // At the place of the link, and even with the checksum of the link: a build-id decides.
    let case = Case::with_build_id();
    let beside = case.library.with_file_name("libbeside.debug");
    fs::copy(case.wrong_debug_file(&["-Wl,--build-id=sha1", "-g"]), &beside).unwrap();
    strip_with_link(&case.whole, &beside, &case.library, &[]);
    assert_exported_alone(&case.names());
    // Without a build-id, the checksum decides.
    let case = Case::without_build_id();
    let beside = case.library.with_file_name("libbeside.debug");
    write_debug_file(&case.whole, &beside);
    strip_with_link(&case.whole, &beside, &case.library, &[]);
    fs::copy(case.wrong_debug_file(&["-Wl,--build-id=none", "-g"]), &beside).unwrap();
    assert_exported_alone(&case.names());
}

#[test]
fn a_damaged_debug_file_is_not_used() {
    let case = Case::with_build_id();
    strip(&case.whole, &case.library);
    let place = case.by_build_id();
    write_debug_file(&case.whole, &place);
    let bytes = fs::read(&place).unwrap();
    for damaged in [&b""[..], b"<html>404 Not Found</html>", &bytes[..bytes.len() / 2], &bytes[..64]] {
        fs::write(&place, damaged).unwrap();
        assert_exported_alone(&case.names());
    }
    // A debug file that is a pipe without a writer would block for ever.
    fs::remove_file(&place).unwrap();
    output_of("mkfifo", &[place.to_str().unwrap()]);
    assert_exported_alone(&case.names());
}

/// Reading such a file whole takes minutes.
#[test]
fn an_endless_debug_file_is_not_read() {
    // A checksum covers the whole content.
    let case = Case::without_build_id();
    let beside = case.library.with_file_name("libbeside.debug");
    write_debug_file(&case.whole, &beside);
    strip_with_link(&case.whole, &beside, &case.library, &[]);
    assert_eq!(case.names(), all_named());
    append_hole(&beside);
    assert_exported_alone(&case.names());
    // The table of symbols reaches into the hole.
    let case = Case::with_build_id();
    strip(&case.whole, &case.library);
    let place = case.by_build_id();
    write_debug_file(&case.whole, &place);
    assert_eq!(case.names(), all_named());
    declare_endless_symbols(&place);
    append_hole(&place);
    assert_exported_alone(&case.names());
}

#[test]
fn a_stripped_debug_file_does_not_hide_mini_debug_info() {
    let case = Case::with_build_id();
    strip_with_mini_debug_info(&case.whole, &case.library);
    strip(&case.whole, &case.by_build_id());
    assert_eq!(case.names(), all_named());
}

#[test]
fn damaged_mini_debug_info_names_nothing() {
    let case = Case::with_build_id();
    strip_with_mini_debug_info(&case.whole, &case.library);
    let good = section(&case.library, ".gnu_debugdata");
    assert!(decompress(&good).is_ok());
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 0x55;
    for bytes in [&good[..good.len() / 2], &good[..12], b"no xz", &flipped, &case.whole_bytes()] {
        fs::remove_file(&case.library).unwrap();
        add_mini_debug_info(&case.whole, bytes, &case.library);
        assert_exported_alone(&case.names());
    }
}

impl Case {
    fn whole_bytes(&self) -> Vec<u8> {
        fs::read(&self.whole).unwrap()
    }
}

/// The bytes of a section, by objcopy.
fn section(library: &Path, name: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("section");
    let dump = format!("--dump-section={name}={}", file.display());
    output_of("objcopy", &[&dump, library.to_str().unwrap(), "/dev/null"]);
    fs::read(file).unwrap()
}

#[test]
fn xz_of_every_kind_is_decompressed_and_bombs_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let write = |bytes: &[u8]| fs::write(&file, bytes).unwrap();
    let text = fs::read(file!()).unwrap().repeat(20);
    write(&text);
    for options in [
        &["-0"][..],
        &["-9e"],
        &["--check=none"],
        &["--check=crc32"],
        &["--check=sha256"],
        &["--block-size=4096"],
        &["--x86", "--lzma2"],
        &["--arm64", "--lzma2"],
        &["--delta=dist=4", "--lzma2=preset=1,lc=0,lp=4,pb=0"],
    ] {
        assert_eq!(decompress(&xz(&file, options)).unwrap(), text, "{options:?}");
    }
    write(&[]);
    assert_eq!(decompress(&xz(&file, &[])).unwrap(), b"");
    write(&vec![0; MAX_LEN]);
    assert_eq!(decompress(&xz(&file, &["-1"])).unwrap().len(), MAX_LEN);
    write(&vec![0; MAX_LEN + 1]);
    let bomb = xz(&file, &["-1"]);
    assert!(bomb.len() < 20_000, "{}", bomb.len());
    assert!(matches!(decompress(&bomb), Err(MiniDebugInfoError::TooLarge)));
    // A dictionary of 4 GiB, declared by a stream of some bytes. Its block header has the size, two flags,
    // the filter's number, the length of its properties, the size of the dictionary; then a checksum.
    write(b"text");
    let mut stream = xz(&file, &["--threads=1"]);
    assert_eq!(stream[12..16], [2, 0, 0x21, 1]);
    stream[16] = 40;
    let mut crc = flate2::Crc::new();
    crc.update(&stream[12..20]);
    stream[20..24].copy_from_slice(&crc.sum().to_le_bytes());
    let error = decompress(&stream).unwrap_err().to_string();
    assert!(error.contains("mem_limit"), "{error}");
}
