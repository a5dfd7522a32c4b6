//! Functions, files, lines, columns and chains of inlined functions, compared with llvm-symbolizer: from the
//! debug information and from the index.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use otlpprof_dwarf::index::{Identity, Index, write};
use otlpprof_dwarf::{Inputs, SplitFiles, compile};
use otlpprof_elf::source::{FileSource, Source};
use otlpprof_testkit::debug_information::{
    addresses, answers, assert_equal, compile_cpp, compile_go, compile_rust, has_judges, judged, run,
};
use otlpprof_testkit::toolchain::debug_objects;

/// The addresses in each object.
const COUNT: usize = 10_000;
/// The addresses in each object that are also looked up without the rest of the object.
const DIRECT: usize = 100;

/// Compares the answers for an object with those for `judge`, which has the same addresses. The number of
/// addresses without an answer is `unresolved`. Returns the number of addresses.
fn assert_exact_as(judge: &Path, inputs: &Inputs<'_>, unresolved: usize) -> usize {
    let (name, asked) = (judge.display().to_string(), addresses(judge, COUNT));
    let judged = judged(judge, &asked);
    assert_eq!(judged.iter().filter(|answer| answer.is_empty()).count(), unresolved, "{name}");
    let mut compiled = compile(inputs, None).unwrap();
    assert!(compiled.problems().is_empty(), "{name}: {:?}", compiled.problems());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let identity = Identity { object: b"object".to_vec(), debug: Vec::new(), debug_len: inputs.debug.len() };
    write(&compiled, &identity, &path).unwrap();
    let mut index = Index::open(FileSource::open(&path).unwrap()).unwrap();
    assert_eq!((index.identity(), index.problems()), (&identity, 0));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a file is left beside the index");
    assert_equal(&format!("{name} (index)"), &asked, &answers(&mut index, &asked), &judged);
    assert_equal(&format!("{name} (whole)"), &asked, &answers(&mut compiled, &asked), &judged);
    let is_whole = std::env::var_os("OTLPPROF_TEST_EVERYTHING").is_some();
    let step = if is_whole { 1 } else { asked.len().div_ceil(DIRECT) };
    let few: Vec<u64> = asked.iter().copied().step_by(step).collect();
    let judged_few: Vec<_> = judged.iter().cloned().step_by(step).collect();
    let mut direct = compile(inputs, Some(&few)).unwrap();
    assert_equal(&format!("{name} (direct)"), &few, &answers(&mut direct, &few), &judged_few);
    for outside in outside(judge) {
        assert_eq!(answers(&mut index, &[outside]), [[]], "{name}: {outside:#x}");
        assert_eq!(answers(&mut compiled, &[outside]), [[]], "{name}: {outside:#x}");
    }
    asked.len()
}

fn assert_exact(object: &Path) -> usize {
    let source = FileSource::open(object).unwrap();
    assert_exact_as(object, &Inputs::of(&source), 0)
}

/// Addresses that belong to no function and no symbol: before the first section, and after the last.
fn outside(object: &Path) -> Vec<u64> {
    let bytes = fs::read(object).unwrap();
    let elf = goblin::elf::Elf::parse(&bytes).unwrap();
    let ends = elf.program_headers.iter().map(|header| header.p_vaddr + header.p_memsz);
    let end = ends.max().unwrap();
    vec![0x10, end + 0x1000, end + 0x1000_0000, u64::MAX]
}

#[test]
fn libjvm_is_exact() {
    let Some(folder) = debug_objects().filter(|_| has_judges()) else { return };
    assert_eq!(assert_exact(&folder.join("libjvm.debug")), COUNT);
}

#[test]
fn the_c_library_is_exact() {
    let Some(folder) = debug_objects().filter(|_| has_judges()) else { return };
    assert_eq!(assert_exact(&folder.join("libc.debug")), COUNT);
}

#[test]
fn the_sample_library_is_exact() {
    if has_judges() {
        assert_exact(Path::new(otlpprof_testkit::products::DDPROFTEST));
    }
}

#[test]
fn a_rust_program_is_exact() {
    if !has_judges() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(assert_exact(&compile_rust(folder.path(), "program", &[])), COUNT);
}

#[test]
fn a_go_program_is_exact() {
    if !has_judges() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile_go(folder.path()) else { return };
    assert_eq!(assert_exact(&program), COUNT);
}

#[test]
fn every_version_and_form_is_exact() {
    if !has_judges() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, flags) in [
        ("dwarf2", &["-gdwarf-2"][..]),
        ("dwarf3", &["-gdwarf-3"]),
        ("dwarf4", &["-gdwarf-4"]),
        ("dwarf5", &["-gdwarf-5"]),
        ("dwarf64", &["-gdwarf-5", "-gdwarf64"]),
        ("zlib", &["-g", "-gz=zlib"]),
        ("fixed", &["-g", "-no-pie"]),
        ("parts", &["-g", "-ffunction-sections", "-Wl,--gc-sections"]),
        // References between units.
        ("lto", &["-g", "-flto"]),
    ] {
        assert_exact(&compile_cpp(folder.path(), name, flags));
    }
}

/// Clang 20 and rustc give the ranges of inlined functions by their number in a list, which GNU addr2line
/// does not read.
#[test]
fn inlined_functions_with_numbered_ranges_are_exact() {
    if !has_judges() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compile_rust(folder.path(), "program", &["-C", "dwarf-version=5"]);
    let abbreviations = Command::new("readelf").arg("--debug-dump=abbrev").arg(&program).output().unwrap();
    assert!(String::from_utf8_lossy(&abbreviations.stdout).contains("DW_FORM_rnglistx"));
    assert_eq!(assert_exact(&program), COUNT);
}

#[test]
fn sections_compressed_in_other_ways_are_exact() {
    if !has_judges() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let plain = compile_cpp(folder.path(), "plain", &["-g"]);
    let plain_name = plain.to_str().unwrap();
    // LLVM no longer reads `.zdebug_` sections, so that the judge is the file before.
    for (name, tool, method) in [("older", "objcopy", "zlib-gnu"), ("zstd", "llvm-objcopy-19", "zstd")] {
        run(folder.path(), tool, &[&format!("--compress-debug-sections={method}"), plain_name, name]);
        let source = FileSource::open(&folder.path().join(name)).unwrap();
        assert_exact_as(&plain, &Inputs::of(&source), 0);
    }
}

#[test]
fn files_compressed_by_dwz_are_exact() {
    if !has_judges() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-g", "-DLARGE", "-shared", "-fPIC", "-DLIBRARY"];
    let program = compile_cpp(folder.path(), "program", &flags[..2]);
    let library = compile_cpp(folder.path(), "library", &flags);
    fs::copy(&program, folder.path().join("alone.dwz")).unwrap();
    run(folder.path(), "dwz", &["alone.dwz"]);
    assert!(has_partial_units(&folder.path().join("alone.dwz")));
    assert_eq!(assert_exact(&folder.path().join("alone.dwz")), COUNT);
    // With `.gnu_debugaltlink`, and with `.debug_sup` of DWARF 5.
    for form in [&[][..], &["-5"]] {
        for name in ["program", "library"] {
            fs::copy(folder.path().join(name), folder.path().join(format!("{name}.dwz"))).unwrap();
        }
        run(folder.path(), "dwz", &[form, &["-m", "shared", "program.dwz", "library.dwz"]].concat());
        assert!(["shared", "program.dwz"].iter().all(|name| has_partial_units(&folder.path().join(name))));
        let shared = FileSource::open(&folder.path().join("shared")).unwrap();
        // LLVM does not read supplementary files, so that the judges are the files before.
        for (judge, name) in [(&program, "program.dwz"), (&library, "library.dwz")] {
            let source = FileSource::open(&folder.path().join(name)).unwrap();
            let inputs = Inputs { supplementary: Some(&shared), ..Inputs::of(&source) };
            assert_eq!(assert_exact_as(judge, &inputs, 0), COUNT);
            // Without it, names are missing, which is reported.
            let compiled = compile(&Inputs::of(&source), None).unwrap();
            assert!(compiled.all_problems() > 0);
        }
    }
}

/// Whether dwz has moved entries into units that others import.
fn has_partial_units(object: &Path) -> bool {
    let output = Command::new("readelf").arg("--debug-dump=info").arg(object).output().unwrap();
    String::from_utf8_lossy(&output.stdout).contains("DW_TAG_partial_unit")
}

/// Opens the `.dwo` files of a folder.
struct SplitFolder(PathBuf);

impl SplitFiles for SplitFolder {
    fn open(&self, name: &str, folder: Option<&str>, dwo_id: u64) -> Option<Box<dyn Source + Send + Sync>> {
        assert!(folder.is_some() && dwo_id != 0);
        let name = Path::new(name).file_name()?;
        Some(Box::new(FileSource::open(&self.0.join(name)).ok()?))
    }
}

#[test]
fn split_debug_information_is_exact() {
    if !has_judges() {
        return;
    }
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let folder = tempfile::tempdir().unwrap();
        let program = compile_cpp(folder.path(), "program", &["-gsplit-dwarf", "-DLARGE", version]);
        let files = SplitFolder(folder.path().to_owned());
        let source = FileSource::open(&program).unwrap();
        let inputs = Inputs::of(&source);
        assert_eq!(assert_exact_as(&program, &Inputs { split: Some(&files), ..inputs }, 0), COUNT);
        // Without its files, lines are there and functions are missing, which is reported.
        let compiled = compile(&inputs, None).unwrap();
        assert_eq!(compiled.all_problems(), 2, "{:?}", compiled.problems());
        run(folder.path(), "llvm-dwp-19", &["-e", "program", "-o", "program.dwp"]);
        let package = FileSource::open(&folder.path().join("program.dwp")).unwrap();
        assert_eq!(assert_exact_as(&program, &Inputs { package: Some(&package), ..inputs }, 0), COUNT);
    }
}

/// The debug file of another compilation of the same name has other split units.
#[test]
fn split_files_with_another_id_are_not_used() {
    if !has_judges() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compile_cpp(folder.path(), "program", &["-gsplit-dwarf", "-g"]);
    let other = tempfile::tempdir().unwrap();
    compile_cpp(other.path(), "program", &["-gsplit-dwarf", "-g", "-DLIBRARY", "-shared", "-fPIC"]);
    let source = FileSource::open(&program).unwrap();
    let files = SplitFolder(other.path().to_owned());
    let compiled = compile(&Inputs { split: Some(&files), ..Inputs::of(&source) }, None).unwrap();
    assert_eq!(compiled.all_problems(), 2);
    for problem in compiled.problems() {
        assert!(problem.why.to_string().contains("no split debug information"), "{}", problem.why);
    }
}

#[test]
fn files_without_debug_information_have_names() {
    if !has_judges() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    assert_exact(&compile_cpp(folder.path(), "program", &["-g0"]));
}

/// Hand-written code has symbols without a size, which reach to the next symbol; after a symbol with a size
/// there may be code that no symbol has.
#[test]
fn symbols_without_a_size_are_exact() {
    if !has_judges() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = "
        .text
        .globl first
        .type first, %function
        first: .skip 8, 0x90
        second: .skip 8, 0x90
        .type third, %function
        third: .skip 4, 0x90
        .size third, 4
        .skip 12, 0x90
        .type fourth, %function
        fourth: .skip 8, 0x90
    ";
    fs::write(folder.path().join("labels.s"), source).unwrap();
    run(folder.path(), "gcc", &["-shared", "-nostdlib", "-o", "labels", "labels.s"]);
    let object = folder.path().join("labels");
    let bytes = fs::read(&object).unwrap();
    let elf = goblin::elf::Elf::parse(&bytes).unwrap();
    let text = elf.section_headers.iter().find(|section| section.is_executable()).unwrap();
    let asked: Vec<u64> = (text.sh_addr..text.sh_addr + text.sh_size).collect();
    let judged = judged(&object, &asked);
    let named = judged.iter().filter(|answer| !answer.is_empty()).count();
    assert_eq!((named, asked.len()), (28, 40), "{judged:?}");
    let source = FileSource::open(&object).unwrap();
    let mut compiled = compile(&Inputs::of(&source), None).unwrap();
    assert_equal("labels", &asked, &answers(&mut compiled, &asked), &judged);
}

/// A stripped library and its debug file: the symbols come from the debug file. MiniDebugInfo adds the
/// symbols that `.dynsym` lacks.
#[test]
fn the_fullest_symbol_table_names_functions() {
    if !has_judges() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let whole = compile_cpp(folder.path(), "whole", &["-g0", "-shared", "-fPIC", "-DLIBRARY"]);
    run(folder.path(), "objcopy", &["--strip-all", "whole", "stripped"]);
    run(folder.path(), "objcopy", &["--only-keep-debug", "whole", "debug"]);
    let open = |name: &str| FileSource::open(&folder.path().join(name)).unwrap();
    let (stripped, debug) = (open("stripped"), open("debug"));
    assert_exact_as(&whole, &Inputs { object: Some(&stripped), ..Inputs::of(&debug) }, 0);
    assert_exact_as(&whole, &Inputs { minidebug: Some(&debug), ..Inputs::of(&stripped) }, 0);
}
