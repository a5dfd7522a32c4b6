//! Unwind tables: every row compared with readelf, and walks of real stacks compared with backtrace(3).
#![cfg(target_arch = "x86_64")]

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Command;

use otlpprof_core::address::{ElfVaddr, FileOffset, LoadBias, RuntimeAddr};
use otlpprof_core::memory::Memory;
use otlpprof_core::unwind_rule::{CfaRule, FpRule, ReturnAddressRule, UnwindRule};
use otlpprof_core::unwind_table::UnwindTable;
use otlpprof_elf::file::ElfFile;
use otlpprof_elf::image::{LoadedImage, page_size};
use otlpprof_elf::process_memory::ProcessMemory;
use otlpprof_elf::program_header::ProgramHeader;
use otlpprof_elf::source::FileSource;
use otlpprof_elf::unwind::FrameSections;
use otlpprof_signal::walk::frame_info;
use otlpprof_signal::{fault, safe_load};
use otlpprof_testkit::elf_objects::{Library, compile_library, image_at, image_of, libc_path, libjvms};

/// A row as readelf interprets it: its first address, one past its last, and the text of its columns.
struct OracleRow {
    start: u64,
    end: u64,
    columns: HashMap<String, String>,
    is_signal_trampoline: bool,
    /// Whether the row's function has a CFA that is computed from an index register.
    has_indexed_cfa: bool,
}

/// The output of readelf for a section, with one of its options; empty if there is no such section.
fn shown_by_readelf(path: &Path, option: &str, section: &str) -> String {
    // The exit status is ignored: it is 1 for a libc whose separate debug file is missing.
    let dump = Command::new("readelf").arg(option).arg(path).env("LC_ALL", "C").output().unwrap().stdout;
    let dump = String::from_utf8_lossy(&dump);
    let start_of_section = format!("Contents of the {section} section");
    let Some((_, dump)) = dump.split_once(&start_of_section) else { return String::new() };
    dump.split("Contents of the").next().unwrap().to_owned()
}

/// The rows of the section called `section`, of `readelf --debug-dump=frames-interp`.
fn rows_of_readelf(path: &Path, section: &str) -> Vec<OracleRow> {
    let dump = shown_by_readelf(path, "-wF", section);
    // This option shows expressions in full. An index is multiplied by the size of its elements.
    let written = shown_by_readelf(path, "-wf", section);
    let indexed: HashSet<&str> = written
        .split("\n\n")
        .filter(|block| {
            block.lines().any(|line| line.contains("cfa_expression") && line.contains("DW_OP_mul"))
        })
        .filter_map(|block| block.split_whitespace().nth(5))
        .collect();
    // The augmentation and, if shown, the initial row of each CIE, by its offset.
    let mut cies: HashMap<u64, (String, HashMap<String, String>)> = HashMap::new();
    let mut rows = vec![];
    for block in dump.split("\n\n") {
        let mut lines = block.lines().filter(|line| !line.trim().is_empty());
        let Some(head) = lines.next() else { continue };
        let words: Vec<&str> = head.split_whitespace().collect();
        let Some(&kind) = words.get(3) else { continue };
        let mut shown = vec![];
        if let Some(names) = lines.next() {
            let names: Vec<&str> = names.split_whitespace().skip(1).collect();
            for line in lines {
                // readelf shows a register as `r2 (rcx)`.
                let mut values = line.split_whitespace().filter(|value| !value.starts_with('('));
                let at = u64::from_str_radix(values.next().unwrap(), 16).unwrap();
                let columns = names.iter().map(|name| (*name).to_owned()).zip(values.map(str::to_owned));
                shown.push((at, columns.collect::<HashMap<_, _>>()));
            }
        }
        if kind == "CIE" {
            let offset = u64::from_str_radix(words[0], 16).unwrap();
            let initial = shown.into_iter().next().map(|row| row.1).unwrap_or_default();
            cies.insert(offset, (words[4].to_owned(), initial));
        } else if kind == "FDE" {
            let cie = u64::from_str_radix(words[4].strip_prefix("cie=").unwrap(), 16).unwrap();
            let (start, end) = words[5].strip_prefix("pc=").unwrap().split_once("..").unwrap();
            let [start, end] = [start, end].map(|text| u64::from_str_radix(text, 16).unwrap());
            let (augmentation, initial) = &cies[&cie];
            if shown.is_empty() {
                shown.push((start, initial.clone()));
            }
            let ends: Vec<u64> = shown.iter().skip(1).map(|row| row.0).chain([end]).collect();
            let is_signal_trampoline = augmentation.contains('S');
            let has_indexed_cfa = indexed.contains(words[5]);
            rows.extend(shown.into_iter().zip(ends).filter(|(row, end)| row.0 < *end).map(
                |((start, columns), end)| OracleRow {
                    start,
                    end,
                    columns,
                    is_signal_trampoline,
                    has_indexed_cfa,
                },
            ));
        }
    }
    rows
}

/// Whether `rule` agrees with readelf's row. readelf shows an expression as `exp`, without its contents.
fn agrees(rule: UnwindRule, row: &OracleRow) -> bool {
    let column = |name: &str| row.columns.get(name).map_or("u", String::as_str);
    let offset =
        |text: &str, register: &str| text.strip_prefix(register).and_then(|text| text.parse::<i32>().ok());
    if column("ra") == "u" {
        return rule.cfa == CfaRule::EndOfStack;
    }
    // In the last instructions of a context switch the return address is in a register, or at an address that
    // is not relative to SP or FP.
    let is_elsewhere = |text: &str| text.starts_with('r') || text == "exp";
    let cfa = column("CFA");
    if rule.cfa == CfaRule::Unsupported {
        // Hand-written code may compute its CFA from an index register, as ring's bn_mul_mont does while it
        // allocates its stack frame.
        return is_elsewhere(column("ra")) || cfa == "exp" && row.has_indexed_cfa;
    }
    let cfa_agrees = match rule.cfa {
        CfaRule::SpPlus(plus) => offset(cfa, "rsp") == Some(plus),
        CfaRule::FpPlus(plus) => offset(cfa, "rbp") == Some(plus),
        CfaRule::RegisterPlus(number, plus) => {
            // AMD64 supplement, figure 3.36.
            let names = ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11"];
            names.get(usize::from(number)).is_some_and(|name| offset(cfa, name) == Some(plus))
        }
        CfaRule::SignalFrame => return cfa == "exp" && row.is_signal_trampoline,
        CfaRule::PltX86_64 { .. } | CfaRule::FpDeref { .. } | CfaRule::SpDeref { .. } => cfa == "exp",
        CfaRule::IndexedSpDeref { .. } => cfa == "exp" && row.has_indexed_cfa,
        CfaRule::EndOfStack | CfaRule::Unsupported => false,
    };
    let fp_agrees = match rule.fp {
        FpRule::Same => matches!(column("rbp"), "u" | "s"),
        FpRule::AtCfaPlus(plus) => offset(column("rbp"), "c") == Some(plus),
        FpRule::AtFpPlus(_) => column("rbp") == "exp",
        FpRule::Undefined => false,
    };
    let ra_agrees = match rule.return_address {
        ReturnAddressRule::AtCfaPlus(plus) => offset(column("ra"), "c") == Some(plus),
        ReturnAddressRule::LinkRegister => false,
    };
    cfa_agrees && fp_agrees && ra_agrees
}

/// Checks every row of readelf at its first and last address, and that there is no rule after the end of a
/// function.
fn assert_agrees_with_readelf(table: &UnwindTable, path: &Path, section: &str) {
    let rows = rows_of_readelf(path, section);
    assert!(!rows.is_empty(), "readelf shows rows of {section} in {}", path.display());
    for row in &rows {
        for at in [row.start, row.end - 1] {
            let rule = table
                .rule_at(ElfVaddr(at))
                .unwrap_or_else(|| panic!("{}: no rule at {at:#x}", path.display()));
            assert!(agrees(rule, row), "{} at {at:#x}: {rule:?}, not {:?}", path.display(), row.columns);
        }
    }
    let mut starts: Vec<u64> = rows.iter().map(|row| row.start).collect();
    starts.sort_unstable();
    for row in rows.iter().filter(|row| starts.binary_search(&row.end).is_err()) {
        assert_eq!(table.rule_at(ElfVaddr(row.end)), None, "{} behind {:#x}", path.display(), row.end);
    }
}

fn compile(image: &LoadedImage) -> UnwindTable {
    FrameSections::of_image(image).unwrap().compile()
}

#[test]
fn every_row_of_real_objects_agrees_with_readelf() {
    for path in libjvms() {
        let _library = Library::open(&path);
        assert_agrees_with_readelf(&compile(&image_of(&path).unwrap()), &path, ".eh_frame");
    }
    let libc = image_at(libc::getpid as *const () as u64);
    assert_agrees_with_readelf(&compile(&libc), &libc_path(), ".eh_frame");
    let this = image_at(compile as *const () as u64);
    assert_agrees_with_readelf(&compile(&this), &std::env::current_exe().unwrap(), ".eh_frame");
}

#[test]
fn libraries_with_frame_pointers_are_recognised() {
    for (path, keeps) in
        [(otlpprof_testkit::products::DDPROFTEST, false), (otlpprof_testkit::products::DDPROFTEST_FP, true)]
    {
        let _library = Library::open(Path::new(path));
        assert_eq!(compile(&image_of(Path::new(path)).unwrap()).keeps_frame_pointers(), keeps, "{path}");
    }
}

#[test]
fn libc_has_the_special_frames() {
    let table = compile(&image_at(libc::getpid as *const () as u64));
    let count = |wanted: fn(CfaRule) -> bool| {
        table.rows().filter(|(_, rule)| rule.is_some_and(|rule| wanted(rule.cfa))).count()
    };
    assert!(count(|cfa| cfa == CfaRule::SignalFrame) > 0, "__restore_rt");
    assert!(count(|cfa| cfa == CfaRule::EndOfStack) > 0, "clone");
    assert!(count(|cfa| matches!(cfa, CfaRule::PltX86_64 { threshold: 10 | 11 })) > 0, "the PLT");
}

#[test]
fn the_vdso_has_rows() {
    // SAFETY: getauxval has no preconditions.
    let image = image_at(unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) });
    // readelf needs the section headers, which follow the segment in its last page.
    let len = image.readable_from(ElfVaddr(0)).next_multiple_of(page_size());
    let mut file = vec![0; len as usize];
    assert!(ProcessMemory.read_bytes(image.load_bias().0, &mut file));
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("vdso.so");
    std::fs::write(&copy, file).unwrap();
    assert_agrees_with_readelf(&compile(&image), &copy, ".eh_frame");
}

/// The rule that a handler reads from the call frame information in place while there is no table yet.
fn rule_in_place(image: &LoadedImage, at: ElfVaddr) -> Option<UnwindRule> {
    let header = image.runtime_range(image.program_header(libc::PT_GNU_EH_FRAME).unwrap()).start;
    frame_info::rule_at(&safe_load::ProcessMemory, header.0, image.load_bias().to_runtime(at).0)
}

#[test]
fn rules_read_in_place_are_those_of_the_table() {
    fault::install().unwrap();
    let libraries: Vec<_> = libjvms().iter().map(|path| (Library::open(path), path.clone())).collect();
    let mut images: Vec<_> = libraries.iter().map(|(_, path)| image_of(path).unwrap()).collect();
    // SAFETY: getauxval has no preconditions.
    let vdso = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    images.extend([libc::getpid as *const () as u64, compile as *const () as u64, vdso].map(image_at));
    for image in images {
        let table = compile(&image);
        let ends = table.rows().skip(1).map(|(start, _)| start.0);
        for ((start, rule), end) in table.rows().zip(ends) {
            for at in [start, ElfVaddr(end - 1)] {
                assert_eq!(rule_in_place(&image, at), rule, "{} at {at:#x}", image.name().display());
            }
        }
    }
}

/// Whether a demangled name has a path that begins with `otlpprof::` or the name of a crate, such as
/// `otlpprof_signal::`.
fn is_of_this_workspace(name: &str) -> bool {
    name.match_indices("otlpprof").any(|(at, _)| {
        name[at..].trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').starts_with("::")
    })
}

/// Assembly has call frame information only if its source declares it. Without it, a thread that is sampled
/// in such a function has no caller.
#[test]
fn all_functions_of_the_agent_are_described() {
    let agent = std::env::current_exe().unwrap().with_file_name("libotlpprof.so");
    let library = Library::open(&agent);
    let image = image_of(&agent).unwrap();
    let table = compile(&image);
    let symbols = otlpprof_testkit::commands::output_of(
        "nm",
        &["--defined-only", "--demangle", agent.to_str().unwrap()],
    );
    let mut functions = 0;
    for line in symbols.lines() {
        let mut words = line.splitn(3, ' ');
        let (Some(address), Some("t" | "T"), Some(name)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if is_of_this_workspace(name) {
            let address = u64::from_str_radix(address, 16).unwrap();
            assert!(table.rule_at(ElfVaddr(address)).is_some(), "{name} at {address:#x}");
            functions += 1;
        }
    }
    assert!(functions > 1000, "{functions}");
    drop(library);
}

/// Source that is compiled so that only the start-up files have `.eh_frame`.
const DEBUG_FRAME_SOURCE: &str = r#"
    int callee(int);
    int only_debug_frame(int value) {
        int many[64]; many[value & 63] = value; callee(many[1]); return many[value & 31] + 1;
    }
    int callee(int value) { return value + 1; }
"#;

#[test]
fn debug_frame_fills_the_gaps_of_eh_frame() {
    let directory = tempfile::tempdir().unwrap();
    let path = compile_library(
        directory.path(),
        "libdebugframe.so",
        DEBUG_FRAME_SOURCE,
        &["-g", "-fno-asynchronous-unwind-tables", "-fno-exceptions"],
    );
    let library = Library::open(&path);
    let image = image_of(&path).unwrap();
    let mut sections = FrameSections::of_image(&image).unwrap();
    let function = image.load_bias().to_elf(RuntimeAddr(library.symbol("only_debug_frame")));
    assert_eq!(sections.compile().rule_at(function), None);

    sections.add_debug_frame(&ElfFile::parse(FileSource::open(&path).unwrap()).unwrap()).unwrap();
    let table = sections.compile();
    assert_eq!(table.rule_at(function).unwrap().cfa, CfaRule::SpPlus(8));
    for section in [".eh_frame", ".debug_frame"] {
        // A function of the other section may follow a function of this one, so only the starts of rows are
        // compared.
        for row in rows_of_readelf(&path, section) {
            assert!(agrees(table.rule_at(ElfVaddr(row.start)).unwrap(), &row));
        }
    }
}

/// An image with one readable and executable segment over `file`, and with its other program headers.
fn image_over(file: &[u8]) -> LoadedImage {
    let len = file.len() as u64;
    let whole = ProgramHeader {
        kind: libc::PT_LOAD,
        flags: libc::PF_R | libc::PF_X,
        offset: FileOffset(0),
        vaddr: ElfVaddr(0),
        file_size: len,
        memory_size: len,
        align: 1,
    };
    let headers = ElfFile::parse(file).unwrap().program_headers().unwrap();
    let others = headers.into_iter().filter(|header| !header.is_load());
    LoadedImage::new("copy".into(), LoadBias(file.as_ptr() as u64), others.chain([whole]).collect())
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2000))]

    /// Whatever the sections contain, compilation ends, and the rows stay within the code.
    #[test]
    fn damaged_sections_are_compiled_without_panic(
        damage in proptest::collection::vec(
            (proptest::prelude::any::<proptest::sample::Index>(), proptest::prelude::any::<u8>()),
            1..12,
        ),
    ) {
        // SAFETY: getauxval has no preconditions.
        let vdso = image_at(unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) });
        let mut file = vdso.read(ElfVaddr(0), vdso.readable_from(ElfVaddr(0))).unwrap();
        let header = *vdso.program_header(libc::PT_GNU_EH_FRAME).unwrap();
        let sections_start = header.vaddr.0 as usize;
        for (index, value) in &damage {
            // The header, its table, and the frames that follow the table.
            let at = sections_start + index.index((file.len() - sections_start).min(0x160));
            file[at] = *value;
        }
        let image = image_over(&file);
        if let Ok(sections) = FrameSections::of_image(&image) {
            let table = sections.compile();
            proptest::prop_assert!(table.rows().all(|(start, _)| start.0 <= file.len() as u64));
        }
        // A handler's reading in place of the same bytes.
        fault::install().unwrap();
        for at in (0..file.len() as u64).step_by(97) {
            rule_in_place(&image, ElfVaddr(at));
        }
    }
}
