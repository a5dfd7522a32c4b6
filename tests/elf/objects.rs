//! The registry of loaded objects: compared with /proc/self/maps, and while real libraries are loaded,
//! unloaded, deleted and replaced.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use otlpprof_core::address::{ElfVaddr, RuntimeAddr};
use otlpprof_core::memory::Memory;
use otlpprof_core::object::{ObjectIndex, ObjectMap};
use otlpprof_elf::objects::backing_file::BackingFileError;
use otlpprof_elf::objects::{MAX_UNLOADED, ObjectDetails, ObjectKind, ObjectRegistry};
use otlpprof_elf::process_memory::ProcessMemory;
use otlpprof_testkit::commands::output_of;
use otlpprof_testkit::elf_objects::{Library, compile_library, libjvms};

/// Every registry of this process sees every load and unload, so only one test at a time may load libraries.
static LOADING: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn loading_alone() -> std::sync::MutexGuard<'static, ()> {
    LOADING.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn details_at(registry: &ObjectRegistry, map: &ObjectMap, pc: u64) -> Option<Arc<ObjectDetails>> {
    registry.details(map.find(RuntimeAddr(pc))?.index)
}

fn library(directory: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    compile_library(directory, name, source, flags)
}

const WITHOUT_BUILD_ID: &[&str] = &["-Wl,--build-id=none"];
const WITH_BUILD_ID: &[&str] = &["-Wl,--build-id=sha1"];

#[test]
fn all_executable_files_of_the_memory_map_are_known() {
    let _alone = loading_alone();
    let _libraries: Vec<_> = libjvms().iter().map(|path| Library::open(path)).collect();
    let registry = ObjectRegistry::new();
    let map = registry.refresh().map;
    let mut seen = 0;
    for line in std::fs::read_to_string("/proc/self/maps").unwrap().lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (range, access, path) = (fields[0], fields[1], fields.get(5).copied().unwrap_or(""));
        if !access.contains('x') || path == "[vsyscall]" || path.is_empty() {
            continue;
        }
        let (start, end) = range.split_once('-').unwrap();
        let start = u64::from_str_radix(start, 16).unwrap();
        let end = u64::from_str_radix(end, 16).unwrap();
        // Whole pages are mapped, while the range is the segment of the program header.
        let range = map.ranges().iter().find(|range| range.start.0 < end && start < range.end.0);
        let object = &range.unwrap_or_else(|| panic!("nothing at {line}")).object;
        let pc = range.unwrap().start;
        assert!(pc.0 >= start && pc.0 < start + 0x1000);
        let details = details_at(&registry, &map, pc.0).unwrap();
        let vaddr = details.load_bias().to_elf(pc);
        let segment = details.code_segment_at(vaddr).unwrap();
        if path == "[vdso]" {
            assert_eq!((details.kind, details.path.to_str()), (ObjectKind::Vdso, Some("[vdso]")));
            assert!(details.build_id.is_some());
        } else {
            assert_eq!(details.path.canonicalize().unwrap(), Path::new(path));
            let offset = u64::from_str_radix(fields[2], 16).unwrap();
            assert_eq!((segment.vaddrs.start, segment.file_offset.0 & !0xfff), (vaddr, offset));
            assert!(details.open_file().is_ok(), "{path}");
            assert_eq!(details.htlhash().unwrap().to_string().len(), 32);
        }
        assert_eq!(ProcessMemory.load_u64(object.identity.address.0), Some(object.identity.value));
        assert_eq!(object.index, details.index);
        seen += 1;
    }
    assert!(seen >= 4, "the program, libc, the dynamic linker and the vDSO");

    let program = details_at(&registry, &map, library as *const () as u64).unwrap();
    assert_eq!((program.kind, &program.path), (ObjectKind::Program, &std::env::current_exe().unwrap()));
}

/// Libraries that are linked to an address, like programs that are not position-independent: their addresses
/// do not begin at 0.
#[test]
fn objects_that_were_linked_to_an_address_have_addresses_of_the_file() {
    let _alone = loading_alone();
    let directory = tempfile::tempdir().unwrap();
    let paths = ["libfirst.so", "libsecond.so"].map(|name| {
        let source = "int linked_function(int value) { return value + 1; }";
        library(directory.path(), name, source, &["-Wl,-Ttext-segment=0x400000"])
    });
    let loaded = paths.each_ref().map(|path| Library::open(path));
    let registry = ObjectRegistry::new();
    let map = registry.refresh().map;
    let mut biases = vec![];
    for (path, library) in paths.iter().zip(&loaded) {
        let symbols = output_of("nm", &[path.to_str().unwrap()]);
        let line = symbols.lines().find(|line| line.ends_with(" T linked_function")).unwrap();
        let linked_at = ElfVaddr(u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap());
        assert!(linked_at.0 > 0x40_0000, "{symbols}");
        let function = library.symbol("linked_function");
        let details = details_at(&registry, &map, function).unwrap();
        assert_eq!(details.load_bias().to_elf(RuntimeAddr(function)), linked_at);
        assert!(details.code_segment_at(linked_at).is_some());
        biases.push(details.load_bias().0);
    }
    // Both libraries cannot be at the address that they were linked to.
    assert_ne!(biases[0], biases[1]);
}

#[test]
fn nothing_changes_while_nothing_is_loaded() {
    let _alone = loading_alone();
    let registry = ObjectRegistry::new();
    let first = registry.refresh();
    assert!(first.changed);
    let second = registry.refresh();
    assert!(!second.changed);
    assert!(Arc::ptr_eq(&first.map, &second.map));
}

#[test]
fn a_loading_has_its_own_index_and_is_remembered_until_it_is_retired() {
    let _alone = loading_alone();
    let directory = tempfile::tempdir().unwrap();
    let path = library(directory.path(), "libone.so", "int one(void) { return 1; }", WITH_BUILD_ID);
    let registry = ObjectRegistry::new();
    let before = registry.refresh();

    let load = || {
        let handle = Library::open(&path);
        let refreshed = registry.refresh();
        assert!(refreshed.changed);
        let pc = handle.symbol("one");
        let details = details_at(&registry, &refreshed.map, pc).unwrap();
        assert_eq!((details.kind, &details.path), (ObjectKind::Library, &path));
        drop(handle);
        let gone = registry.refresh();
        assert!(gone.changed && gone.map.generation > refreshed.map.generation);
        assert!(gone.map.find(RuntimeAddr(pc)).is_none());
        (details.index, refreshed.map, gone.map)
    };
    let (first, first_map, first_gone) = load();
    let (second, _, second_gone) = load();
    assert_ne!(first, second);
    assert!(before.map.find(RuntimeAddr(library as *const () as u64)).is_some());

    // Objects that stay loaded keep their index.
    let here = RuntimeAddr(library as *const () as u64);
    let index_in = |map: &ObjectMap| map.find(here).unwrap().index;
    assert_eq!(index_in(&before.map), index_in(&second_gone));

    assert!(registry.details(first).is_some() && registry.details(second).is_some());
    registry.retire(first_map.generation);
    assert!(registry.details(first).is_some(), "a sample with the map before it was unloaded may remain");
    registry.retire(first_gone.generation);
    assert!(registry.details(first).is_none() && registry.details(second).is_some());
    registry.retire(second_gone.generation);
    assert_eq!((registry.details(second).is_none(), registry.unloaded_count()), (true, 0));
    assert!(registry.details(index_in(&before.map)).is_some());
}

/// The result of `open_file` after `change` has been applied to the file of a loaded library.
fn open_after(flags: &[&str], change: impl FnOnce(&Path)) -> Result<(), BackingFileError> {
    let directory = tempfile::tempdir().unwrap();
    let path = library(directory.path(), "libchanging.so", "int f(void) { return 1; }", flags);
    let handle = Library::open(&path);
    let registry = ObjectRegistry::new();
    let map = registry.refresh().map;
    let details = details_at(&registry, &map, handle.symbol("f")).unwrap();
    assert_eq!(details.build_id.is_some(), flags == WITH_BUILD_ID);
    assert!(details.open_file().is_ok());
    change(&path);
    // The build-id and address of the loaded object do not depend on the file.
    assert_eq!(details_at(&registry, &map, handle.symbol("f")).unwrap().index, details.index);
    details.open_file().map(|_| ())
}

/// Replaces `path` with another library by renaming, as package managers do.
fn replace(path: &Path, source: &str, flags: &[&str]) {
    let directory = tempfile::tempdir_in(path.parent().unwrap()).unwrap();
    let other = library(directory.path(), "libchanging.so", source, flags);
    std::fs::rename(other, path).unwrap();
}

#[test]
fn a_file_is_used_only_if_it_is_the_loaded_one() {
    let _alone = loading_alone();
    for flags in [WITH_BUILD_ID, WITHOUT_BUILD_ID] {
        let deleted = open_after(flags, |path| std::fs::remove_file(path).unwrap());
        assert!(matches!(deleted, Err(BackingFileError::Io(_))), "{deleted:?}");
        let replaced = open_after(flags, |path| replace(path, "int f(void) { return 2; }", flags));
        assert!(matches!(replaced, Err(BackingFileError::Replaced)), "{replaced:?}");
        let put_back = open_after(flags, |path| {
            let content = std::fs::read(path).unwrap();
            std::fs::remove_file(path).unwrap();
            std::fs::write(path, content).unwrap();
        });
        assert!(put_back.is_ok(), "the same content: {put_back:?}");
        let touched =
            open_after(flags, |path| drop(output_of("touch", &["-d", "2001-01-01", path.to_str().unwrap()])));
        assert!(touched.is_ok(), "{touched:?}");
        let garbage = open_after(flags, |path| {
            std::fs::remove_file(path).unwrap();
            std::fs::write(path, b"no ELF file").unwrap();
        });
        assert!(matches!(garbage, Err(BackingFileError::Replaced)), "{garbage:?}");
    }
}

#[test]
fn an_object_whose_file_was_deleted_before_the_scan_is_known_too() {
    let _alone = loading_alone();
    let directory = tempfile::tempdir().unwrap();
    for flags in [WITH_BUILD_ID, WITHOUT_BUILD_ID] {
        let path = library(directory.path(), "libdeleted.so", "int f(void) { return 1; }", flags);
        let expected = otlpprof_elf::build_id::of_file(&path).ok();
        let handle = Library::open(&path);
        std::fs::remove_file(&path).unwrap();
        let registry = ObjectRegistry::new();
        let map = registry.refresh().map;
        let details = details_at(&registry, &map, handle.symbol("f")).unwrap();
        assert_eq!(details.build_id.copied(), expected);
        assert_eq!(details.path, path);
        assert_eq!(details.htlhash(), None);
        while registry.compile_next(u64::MAX) {}
        let object = map.find(RuntimeAddr(handle.symbol("f"))).unwrap();
        let vaddr = object.load_bias.to_elf(RuntimeAddr(handle.symbol("f")));
        assert!(object.unwind.get().unwrap().rule_at(vaddr).is_some());
    }
}

/// Removes the note segments from a library's program headers, so that the notes are only in a section of the
/// file.
fn hide_note_segments(path: &Path) {
    let mut file = std::fs::read(path).unwrap();
    let word = |at: usize, bytes: &[u8]| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let (table, count) = (word(32, &file), usize::from(u16::from_le_bytes([file[56], file[57]])));
    for header in (0..count).map(|number| table + number * 56) {
        if file[header..header + 4] == libc::PT_NOTE.to_le_bytes() {
            file[header..header + 4].copy_from_slice(&libc::PT_NULL.to_le_bytes());
        }
    }
    std::fs::write(path, file).unwrap();
}

#[test]
fn a_build_id_that_is_not_in_memory_is_read_from_the_file() {
    let _alone = loading_alone();
    let directory = tempfile::tempdir().unwrap();
    let path = library(directory.path(), "libhidden.so", "int f(void) { return 1; }", WITH_BUILD_ID);
    let printed = output_of("readelf", &["-nW", path.to_str().unwrap()]);
    let expected = printed.split_once("Build ID: ").unwrap().1.lines().next().unwrap().to_owned();
    hide_note_segments(&path);
    let build_id_seen = |handle: &Library| {
        let registry = ObjectRegistry::new();
        let map = registry.refresh().map;
        let details = details_at(&registry, &map, handle.symbol("f")).unwrap();
        let object = map.find(RuntimeAddr(handle.symbol("f"))).unwrap();
        assert_eq!(object.build_id, details.build_id);
        assert!(otlpprof_elf::build_id::of_image(details.image()).is_err(), "it is in memory");
        details.build_id.map(|id| id.to_string())
    };
    let handle = Library::open(&path);
    assert_eq!(build_id_seen(&handle), Some(expected));

    // Another file in the library's place must not lend the library its build-id.
    let other = library(directory.path(), "libother.so", "int f(void) { return 2; }", WITH_BUILD_ID);
    hide_note_segments(&other);
    std::fs::rename(other, &path).unwrap();
    assert_eq!(build_id_seen(&handle), None);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(build_id_seen(&handle), None);
}

#[test]
fn a_relative_name_becomes_an_absolute_path() {
    let _alone = loading_alone();
    let directory = tempfile::tempdir_in(".").unwrap();
    let relative = Path::new(".").join(directory.path().file_name().unwrap());
    let path = library(&relative, "librelative.so", "int f(void) { return 1; }", WITH_BUILD_ID);
    assert!(path.is_relative());
    let handle = Library::open(&path);
    let registry = ObjectRegistry::new();
    let map = registry.refresh().map;
    let details = details_at(&registry, &map, handle.symbol("f")).unwrap();
    assert_eq!(details.path, path.canonicalize().unwrap());
}

#[test]
fn unwind_tables_are_compiled_once_for_every_object() {
    let _alone = loading_alone();
    let registry = ObjectRegistry::new();
    let map = registry.refresh().map;
    let mut compiled = 0;
    while registry.compile_next(u64::MAX) {
        compiled += 1;
    }
    assert_eq!(compiled, registry.loaded().len());
    for range in map.ranges() {
        assert!(range.object.unwind.get().is_some());
    }
    let libc = map.find(RuntimeAddr(libc::getpid as *const () as u64)).unwrap();
    assert!(libc.unwind.get().unwrap().len() > 1000);
}

#[test]
fn a_pc_can_be_looked_up_late_only_if_nothing_was_unloaded_since() {
    let _alone = loading_alone();
    let directory = tempfile::tempdir().unwrap();
    let registry = ObjectRegistry::new();
    let start = registry.refresh().counts;
    let one = library(directory.path(), "libone.so", "int f(void) { return 1; }", WITH_BUILD_ID);
    let two = library(directory.path(), "libtwo.so", "int f(void) { return 2; }", WITH_BUILD_ID);
    let first = Library::open(&one);
    let pc = RuntimeAddr(first.symbol("f"));
    assert_eq!(registry.find_late(pc, start).unwrap().path, one);
    drop(first);
    // This library is likely at the same place, with f at the same address.
    let second = Library::open(&two);
    assert!(registry.find_late(pc, start).is_none());
    assert!(registry.find_late(RuntimeAddr(second.symbol("f")), start).is_none());
    let now = registry.refresh().counts;
    assert_eq!(registry.find_late(RuntimeAddr(second.symbol("f")), now).unwrap().path, two);
}

#[test]
fn a_library_that_takes_anothers_place_is_another_object() {
    let _alone = loading_alone();
    for flags in [WITH_BUILD_ID, WITHOUT_BUILD_ID] {
        // The loader chooses a library's place, and other threads may map memory in between.
        let took_its_place = (0..50).any(|_| one_takes_anothers_place(flags));
        assert!(took_its_place, "{flags:?}: the loader always chose another place");
    }
}

/// Loads two libraries with the same name, one after the other. Returns whether the second was loaded at the
/// first one's place.
fn one_takes_anothers_place(flags: &[&str]) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let registry = ObjectRegistry::new();
    let [(first_pc, first), (second_pc, second)] = [1, 2].map(|value| {
        let source = format!("int f(void) {{ return {value}; }}");
        let built = library(directory.path(), "libbuilt.so", &source, flags);
        // Both have the same name, so without a build-id only the file distinguishes them.
        let path = directory.path().join("libsame.so");
        std::fs::rename(built, &path).unwrap();
        let handle = Library::open(&path);
        let map = registry.refresh().map;
        let pc = handle.symbol("f");
        (pc, map.find(RuntimeAddr(pc)).unwrap().index)
    });
    assert_ne!(first, second, "{flags:?}");
    first_pc == second_pc
}

#[test]
fn a_storm_of_loads_leaves_bounded_memory() {
    let _alone = loading_alone();
    let directory = tempfile::tempdir().unwrap();
    let path = library(directory.path(), "libstorm.so", "int f(void) { return 1; }", WITH_BUILD_ID);
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    let registry = ObjectRegistry::new();
    let mut last: Option<ObjectIndex> = None;
    let rounds = 3000;
    for round in 0..rounds {
        // SAFETY: the library has no constructors.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        let loaded = registry.refresh();
        // SAFETY: `handle` was opened above, and is closed once, after the last use.
        let pc = unsafe {
            let pc = libc::dlsym(handle, c"f".as_ptr()) as u64;
            libc::dlclose(handle);
            pc
        };
        let index = loaded.map.find(RuntimeAddr(pc)).unwrap().index;
        assert!(last.is_none_or(|last| index > last), "an index is never given out again");
        last = Some(index);
        let gone = registry.refresh();
        // The session drains samples regularly.
        if round % 100 == 99 {
            registry.retire(gone.map.generation);
            assert_eq!(registry.unloaded_count(), 0);
        }
        assert!(registry.unloaded_count() <= 100);
    }
    assert_eq!(registry.forgotten_count(), 0);
    assert!(MAX_UNLOADED > rounds);
}
