//! Symbolization compared with nm: for files that exist, are deleted, replaced or stripped, and for the vDSO.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use otlpprof_core::address::{ElfVaddr, RuntimeAddr};
use otlpprof_elf::objects::{ObjectDetails, ObjectRegistry};
use otlpprof_elf::symbols::Symbolizer;
use otlpprof_elf::symbols::tables::Symbols;
use otlpprof_testkit::commands::output_of;
use otlpprof_testkit::elf_objects::{Library, compile_library, libjvms};

/// The names of the function at each address in the output of nm, from `.symtab` or, without it, `.dynsym`.
fn functions_of_nm(path: &Path) -> BTreeMap<u64, BTreeSet<String>> {
    let nm = |flags: &[&str]| {
        let output = Command::new("nm").args(flags).arg(path).env("LC_ALL", "C").output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let mut listing = nm(&["--defined-only", "--without-symbol-versions"]);
    if listing.is_empty() {
        listing = nm(&["-D", "--defined-only", "--without-symbol-versions"]);
    }
    let mut functions: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for line in listing.lines() {
        let mut fields = line.split(' ');
        let (Some(address), Some(kind), Some(name)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        if matches!(kind, "T" | "t" | "W" | "w" | "i") {
            functions.entry(u64::from_str_radix(address, 16).unwrap()).or_default().insert(name.to_owned());
        }
    }
    functions
}

fn details_of(pc: u64) -> Arc<ObjectDetails> {
    let registry = ObjectRegistry::new();
    let index = registry.refresh().map.find(RuntimeAddr(pc)).expect("an object").index;
    registry.details(index).unwrap()
}

fn without_version(name: &str) -> &str {
    name.split('@').next().unwrap()
}

/// Checks that every function is found at its first address under one of its names.
fn assert_agrees_with_nm(details: &ObjectDetails) -> usize {
    let functions = functions_of_nm(&details.path);
    let symbols = Symbols::of(details).unwrap();
    let mut compared = 0;
    for (&address, names) in &functions {
        if details.code_segment_at(ElfVaddr(address)).is_none() {
            continue;
        }
        let Some((start, name)) = symbols.find(ElfVaddr(address)) else {
            panic!("{}: no symbol at {address:#x}, {names:?}", details.path.display())
        };
        // A label without a size within a function is not a separate function.
        if start.0 == address {
            assert!(names.contains(without_version(&name)), "{address:#x}: {name}, not {names:?}");
            compared += 1;
        }
    }
    assert!(
        compared * 100 >= functions.len() * 99,
        "{compared} of {} in {}",
        functions.len(),
        details.path.display()
    );
    compared
}

#[test]
fn every_function_of_real_objects_agrees_with_nm() {
    for path in libjvms() {
        let library = Library::open(&path);
        let details = details_of(library.symbol("JNI_CreateJavaVM"));
        assert!(assert_agrees_with_nm(&details) > 40_000, "libjvm keeps its symbol table");
        let symbols = Symbols::of(&details).unwrap();
        assert!(symbols.heap_bytes() <= 12 * symbols.len());
    }
    assert!(assert_agrees_with_nm(&details_of(libc::getpid as *const () as u64)) > 1000);
    assert!(assert_agrees_with_nm(&details_of(details_of as *const () as u64)) > 1000);
}

#[test]
fn names_are_given_as_written_and_as_linked() {
    let details = details_of(details_of as *const () as u64);
    let inside = details.load_bias().to_elf(RuntimeAddr(details_of as *const () as u64 + 1));
    let symbolizer = Symbolizer::new(None);
    let symbol = symbolizer.symbol(&details, inside).unwrap();
    assert_eq!(symbol.name, concat!(module_path!(), "::details_of"));
    assert_ne!(symbol.linkage_name, symbol.name);
    assert_eq!(symbol.start.0, inside.0 - 1);
    assert!(Arc::ptr_eq(&symbol, &symbolizer.symbol(&details, inside).unwrap()));
}

const SOURCE: &str = "
    static int hidden(int value) { return value * 3; }
    int exported(int value) { return hidden(value + 1) + hidden(value); }
";

/// The names found within `exported` and within `hidden`, after `change` to the loaded library's file.
fn names_after(change: impl FnOnce(&Path)) -> (Option<String>, Option<String>) {
    let directory = tempfile::tempdir().unwrap();
    let flags = ["-Wl,--build-id=sha1", "-fno-inline", "-O0"];
    let path = compile_library(directory.path(), "libnames.so", SOURCE, &flags);
    let listing = functions_of_nm(&path);
    let hidden = *listing.iter().find(|(_, names)| names.contains("hidden")).unwrap().0;
    let library = Library::open(&path);
    let details = details_of(library.symbol("exported"));
    let exported = details.load_bias().to_elf(RuntimeAddr(library.symbol("exported")));
    change(&path);
    let symbolizer = Symbolizer::new(None);
    let name = |vaddr| symbolizer.symbol(&details, vaddr).map(|symbol| symbol.name.clone());
    (name(ElfVaddr(exported.0 + 4)), name(ElfVaddr(hidden + 4)))
}

#[test]
fn the_loaded_symbols_serve_where_the_file_does_not() {
    let exported = Some("exported".to_owned());
    assert_eq!(names_after(|_| ()), (exported.clone(), Some("hidden".to_owned())));
    assert_eq!(names_after(|path| std::fs::remove_file(path).unwrap()), (exported.clone(), None));
    // Another file in the library's place has other functions at these addresses.
    let replaced = names_after(|path| {
        let directory = tempfile::tempdir_in(path.parent().unwrap()).unwrap();
        let other = SOURCE.replace("exported", "wrong").replace("hidden", "wrong_too");
        let other = compile_library(directory.path(), "libnames.so", &other, &["-Wl,--build-id=sha1"]);
        std::fs::rename(other, path).unwrap();
    });
    assert_eq!(replaced, (exported.clone(), None));
    // Stripping keeps the build-id.
    let stripped = names_after(|path| {
        let copy = path.with_extension("stripped");
        output_of("strip", &["-o", copy.to_str().unwrap(), path.to_str().unwrap()]);
        std::fs::rename(copy, path).unwrap();
    });
    assert_eq!(stripped, (exported, None));
}

/// Regression: `_init` has no size, and so it named everything after its section, which is the PLT.
#[test]
fn a_plt_entry_is_not_the_function_without_a_size_before_it() {
    let directory = tempfile::tempdir().unwrap();
    let source = "int atoi(const char *); int exported(const char *text) { return atoi(text) + 1; }";
    let flags = ["-Wl,--build-id=sha1", "-Wl,-z,lazy"];
    let path = compile_library(directory.path(), "libplt.so", source, &flags);
    assert!(functions_of_nm(&path).values().any(|names| names.contains("_init")), "crti.o has it");
    let library = Library::open(&path);
    let details = details_of(library.symbol("exported"));
    let symbols = Symbols::of(&details).unwrap();
    let sections = output_of("readelf", &["-SW", path.to_str().unwrap()]);
    let section = |name: &str| {
        let line = sections.lines().find(|line| line.contains(&format!(" {name} ")))?;
        let fields: Vec<_> = line.split_whitespace().skip_while(|field| *field != "PROGBITS").collect();
        let [start, size] = [1, 3].map(|at| u64::from_str_radix(fields[at], 16).unwrap());
        Some(start..start + size)
    };
    let name_at = |vaddr| symbols.find(ElfVaddr(vaddr)).map(|(_, name)| name);
    let init = section(".init").unwrap();
    assert_eq!(name_at(init.start).as_deref(), Some("_init"));
    assert_eq!(name_at(init.end - 1).as_deref(), Some("_init"));
    let plt = section(".plt").unwrap();
    for vaddr in plt.chain(section(".plt.got").unwrap_or_default()) {
        assert_eq!(name_at(vaddr), None, "{vaddr:#x}");
    }
}

#[test]
fn the_vdso_has_names() {
    // SAFETY: getauxval has no preconditions.
    let start = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    let registry = ObjectRegistry::new();
    let map = registry.refresh().map;
    let object = map.ranges().iter().find(|range| range.object.load_bias.0 == start).unwrap();
    let details = registry.details(object.object.index).unwrap();
    let symbols = Symbols::of(&details).unwrap();
    let names: BTreeSet<String> = (details.code[0].vaddrs.start.0..details.code[0].vaddrs.end.0)
        .filter_map(|vaddr| symbols.find(ElfVaddr(vaddr)))
        .map(|(_, name)| name)
        .collect();
    assert!(names.iter().any(|name| name.contains("clock_gettime")), "{names:?}");
}

#[test]
fn an_address_in_no_function_has_no_name() {
    let details = details_of(details_of as *const () as u64);
    assert_eq!(Symbolizer::new(None).symbol(&details, ElfVaddr(u64::MAX)), None);
}

#[test]
fn unused_tables_are_dropped() {
    let details = details_of(details_of as *const () as u64);
    let symbolizer = Symbolizer::new(None);
    let vaddr = details.load_bias().to_elf(RuntimeAddr(details_of as *const () as u64));
    let symbol = symbolizer.symbol(&details, vaddr).unwrap();
    assert!(symbolizer.held().1 > 0);
    symbolizer.drop_unused();
    assert_eq!(symbolizer.held().0, 1, "it was used in this interval");
    symbolizer.drop_unused();
    assert_eq!(symbolizer.held(), (0, 0));
    symbolizer.forget(details.index);
    assert_eq!(symbolizer.symbol(&details, vaddr), Some(symbol));
}
