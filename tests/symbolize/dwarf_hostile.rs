//! Damaged and hostile debug information: errors with names, and never a panic.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use otlpprof_dwarf::index::{Identity, Index, IndexError, reseal, write};
use otlpprof_dwarf::{Compiled, DwarfError, Inputs, LookUp, Problem, SplitFiles, compile, limits};
use otlpprof_elf::source::{FileSource, Source};
use otlpprof_testkit::debug_information::{Random, run};
use proptest::prelude::*;

/// The abbreviations of [`assembled`]: 1 a unit, 2 a function, 3 an inlined function, 4 a name, 5 a function
/// with a list of address ranges.
const ABBREVIATIONS: &str = "
    .uleb128 1, 0x11
    .byte 1
    .uleb128 0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0, 0
    .uleb128 2, 0x2e
    .byte 1
    .uleb128 0x11, 0x01, 0x12, 0x07, 0x31, 0x13, 0, 0
    .uleb128 3, 0x1d
    .byte 1
    .uleb128 0x11, 0x01, 0x12, 0x07, 0x31, 0x13, 0, 0
    .uleb128 4, 0x2e
    .byte 0
    .uleb128 0x03, 0x08, 0, 0
    .uleb128 5, 0x2e
    .byte 0
    .uleb128 0x55, 0x17, 0, 0
    .byte 0
";

/// The code that entries 2 and 3 describe.
const CODE: &str = "\n .quad code\n .quad 64\n";

/// Links a library of 64 bytes of code, `code`, with one unit of these entries and a line program of these
/// instructions.
fn assembled(folder: &Path, entries: &str, lines: &str) -> PathBuf {
    assembled_units(folder, 1, entries, lines, "")
}

/// Like [`assembled`], with as many units that have the same line program, and with lists of address ranges.
fn assembled_units(folder: &Path, units: usize, entries: &str, lines: &str, ranges: &str) -> PathBuf {
    let units: String = (0..units)
        .map(|unit| {
            let label = if unit == 0 { "unit:" } else { "" };
            format!(
                "
{label}
    .4byte unit_{unit}_end - unit_{unit}_begin
unit_{unit}_begin:
    .2byte 4
    .4byte 0
    .byte 8
    .byte 1
    .quad code
    .quad 64
    .4byte 0
{entries}
    .byte 0
unit_{unit}_end:
"
            )
        })
        .collect();
    let lines = line_table("code.s", &format!(".byte 0, 9, 2\n .quad code\n {lines}"));
    linked(
        folder,
        ABBREVIATIONS,
        &units,
        &format!("{lines}\n .section .debug_ranges, \"\", %progbits\n {ranges}"),
    )
}

/// A line table of one file and these instructions.
fn line_table(file: &str, instructions: &str) -> String {
    format!(
        "
    .4byte line_end - line_begin
line_begin:
    .2byte 4
    .4byte header_end - header_begin
header_begin:
    .byte 1, 1, 1, 1, 1, 13
    .byte 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1
    .byte 0
    .asciz \"{file}\"
    .byte 0, 0, 0
    .byte 0
header_end:
    {instructions}
line_end:
"
    )
}

/// Links a library of 64 bytes of code, `code`, with these abbreviations, units and line tables.
fn linked(folder: &Path, abbreviations: &str, units: &str, lines: &str) -> PathBuf {
    let text = format!(
        "
    .text
    .globl code
    .type code, %function
code:
    .skip 64
    .size code, 64
    .section .debug_abbrev, \"\", %progbits
    {abbreviations}
    .section .debug_info, \"\", %progbits
    {units}
    .section .debug_line, \"\", %progbits
    {lines}
"
    );
    fs::write(folder.join("code.s"), text).unwrap();
    run(folder, "cc", &["-shared", "-nostdlib", "-o", "code.so", "code.s"]);
    folder.join("code.so")
}

/// A line program that ends its sequence after the code.
const LINES: &str = ".byte 13, 2, 64, 0, 1, 1";

fn read(path: &Path) -> Result<Compiled, DwarfError> {
    compile(&Inputs::of(&FileSource::open(path).unwrap()), None)
}

/// The only loss of a library, which still has the name of its code from the symbol table.
fn problem(path: &Path) -> DwarfError {
    let mut compiled = read(path).unwrap();
    assert_eq!(compiled.all_problems(), 1, "{:?}", compiled.problems());
    let bytes = fs::read(path).unwrap();
    let elf = goblin::elf::Elf::parse(&bytes).unwrap();
    let code = elf.syms.iter().find(|symbol| elf.strtab.get_at(symbol.st_name) == Some("code")).unwrap();
    let mut frames = Vec::new();
    compiled.frames(code.st_value + 1, &mut frames).unwrap();
    let names = frames.iter().map(|frame| compiled.text(frame.function.unwrap()).unwrap().to_string());
    assert_eq!(names.collect::<Vec<_>>(), ["code"]);
    let mut problems = compiled.into_problems();
    problems.remove(0).why
}

#[test]
fn a_sound_unit_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let name = "\nname:\n .byte 4\n .asciz \"inner\"\n";
    let entries = format!("{name} .byte 2 {CODE} .4byte name - unit\n .byte 0\n");
    let compiled = read(&assembled(folder.path(), &entries, LINES)).unwrap();
    assert_eq!(compiled.all_problems(), 0, "{:?}", compiled.problems());
}

#[test]
fn origins_in_a_circle_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let entries = format!("self:\n .byte 2 {CODE} .4byte self - unit\n .byte 0\n");
    let library = assembled(folder.path(), &entries, LINES);
    assert!(matches!(problem(&library), DwarfError::Origins));
}

#[test]
fn functions_that_are_nested_too_deeply_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut entries = format!("name:\n .byte 4\n .asciz \"inner\"\n .byte 2 {CODE} .4byte name - unit\n");
    for _ in 0..limits::CHAIN {
        writeln!(entries, " .byte 3 {CODE} .4byte name - unit").unwrap();
    }
    writeln!(entries, " .fill {}, 1, 0", limits::CHAIN + 1).unwrap();
    let library = assembled(folder.path(), &entries, LINES);
    assert!(matches!(problem(&library), DwarfError::Nesting));
}

#[test]
fn a_name_of_megabytes_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let long = format!(" .fill {}, 1, 'x'\n .byte 0\n", limits::TEXT + 1);
    let entries = format!("name:\n .byte 4\n {long} .byte 2 {CODE} .4byte name - unit\n .byte 0\n");
    let library = assembled(folder.path(), &entries, LINES);
    assert!(matches!(problem(&library), DwarfError::Text { .. }));
}

#[test]
fn a_line_table_of_too_many_rows_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    // Each special opcode advances the address by 1 and appends a row.
    let lines = format!(".fill {}, 1, 14\n", limits::LINE_ROWS + 1);
    let library = assembled(folder.path(), "", &lines);
    assert!(matches!(problem(&library), DwarfError::LineRows));
}

/// Regression: each of many units kept the rows of one line table, which a compressed file of some kilobytes
/// could make tens of gigabytes.
#[test]
fn units_that_share_a_line_table_are_bounded() {
    const ROWS: u64 = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let lines = format!(".fill {ROWS}, 1, 14\n .byte 0, 1, 1");
    let library = assembled_units(folder.path(), 16, "", &lines, "");
    let problems = read(&library).unwrap().into_problems();
    assert!(!problems.is_empty() && problems.len() < 16, "{problems:?}");
    assert!(problems.iter().all(|problem| matches!(problem.why, DwarfError::SharedLines)), "{problems:?}");
}

/// Regression: each of many functions read one list of address ranges, for hours.
#[test]
fn functions_that_share_a_list_of_ranges_are_bounded() {
    const RANGES: usize = 10_000;
    const FUNCTIONS: usize = 1_000;
    let folder = tempfile::tempdir().unwrap();
    let entries = " .byte 5\n .4byte 0\n".repeat(FUNCTIONS);
    // Pairs of offsets from the unit's first address.
    let ranges = format!(".rept {RANGES}\n .quad 1, 2\n .endr\n .quad 0, 0\n");
    let library = assembled_units(folder.path(), 1, &entries, LINES, &ranges);
    assert!(matches!(problem(&library), DwarfError::SharedRanges));
}

/// Regression: each of many units read and kept one list of address ranges, which a file of some hundred
/// kilobytes could make gigabytes.
#[test]
fn units_that_share_a_list_of_ranges_are_bounded() {
    const RANGES: usize = 10_000;
    const UNITS: usize = 1_000;
    let folder = tempfile::tempdir().unwrap();
    // A unit's first address, and its list.
    let abbreviations = ".uleb128 1, 0x11\n .byte 0\n .uleb128 0x11, 1, 0x55, 0x17, 0, 0, 0";
    let units: String =
        (0..UNITS).map(|number| unit(number, "0", ".byte 1\n .quad code\n .4byte 0")).collect();
    // Pairs of offsets from the unit's first address.
    let ranges = format!(".rept {RANGES}\n .quad 1, 2\n .endr\n .quad 0, 0\n");
    let sections = format!(".section .debug_ranges, \"\", %progbits\n {ranges}");
    let library = linked(folder.path(), abbreviations, &units, &sections);
    let problems = read(&library).unwrap().into_problems();
    assert!(!problems.is_empty() && problems.len() < UNITS, "{problems:?}");
    assert!(problems.iter().all(|problem| matches!(problem.why, DwarfError::SharedRanges)), "{problems:?}");
}

/// A unit of DWARF 4 with this number, these abbreviations, and one entry.
fn unit(number: usize, abbreviations: &str, entry: &str) -> String {
    format!(
        "
    .4byte unit_{number}_end - unit_{number}_begin
unit_{number}_begin:
    .2byte 4
    .4byte {abbreviations}
    .byte 8
    {entry}
unit_{number}_end:
"
    )
}

/// Asserts that the units of a library are read until their heads are refused.
fn assert_heads_are_refused(path: &Path) {
    let problems = read(path).unwrap().into_problems();
    assert!(!problems.is_empty());
    assert!(problems.iter().all(|problem| matches!(problem.why, DwarfError::SharedHeads)), "{problems:?}");
}

/// Regression: each of many units read the abbreviations that others had read, for hours.
#[test]
fn units_that_share_abbreviations_are_bounded() {
    const UNITS: usize = 4_096;
    let folder = tempfile::tempdir().unwrap();
    let (mut abbreviations, mut units) = (String::new(), String::new());
    for number in 1..=UNITS {
        // The abbreviations of a unit begin with the unit's own, and end with the last unit's.
        writeln!(abbreviations, "of_{number}:\n .uleb128 {number}, 0x11\n .byte 0\n .uleb128 0x11, 1, 0, 0")
            .unwrap();
        let entry = format!(".uleb128 {number}\n .quad code");
        units += &unit(number, &format!("of_{number} - of_1"), &entry);
    }
    abbreviations += " .byte 0\n";
    assert_heads_are_refused(&linked(folder.path(), &abbreviations, &units, ""));
}

/// Regression: each of many units without code read the head of one line table, for hours.
#[test]
fn units_that_share_the_head_of_a_line_table_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let abbreviations = ".uleb128 1, 0x11\n .byte 0\n .uleb128 0x10, 0x17, 0, 0, 0";
    let units: String = (0..1_000).map(|number| unit(number, "0", ".byte 1\n .4byte 0")).collect();
    let lines = line_table(&"x".repeat(64 << 10), "");
    assert_heads_are_refused(&linked(folder.path(), abbreviations, &units, &lines));
}

/// Regression: entries of one byte with a million attributes, which need no bytes, were read for hours.
#[test]
fn an_entry_of_too_many_attributes_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    // A variable that is external again and again.
    let attributes = format!(".rept {}\n .uleb128 0x3f, 0x19\n .endr", limits::ATTRIBUTES + 1);
    let abbreviations = format!(
        ".uleb128 1, 0x11\n .byte 1\n .uleb128 0x11, 1, 0x12, 7, 0, 0
        .uleb128 2, 0x34\n .byte 0\n {attributes}\n .uleb128 0, 0, 0"
    );
    let unit = unit(0, "0", ".byte 1\n .quad code\n .quad 64\n .byte 2, 2, 2, 0");
    let library = linked(folder.path(), &abbreviations, &unit, "");
    assert!(matches!(problem(&library), DwarfError::Attributes));
}

/// A file that is longer than its bytes, as a sparse file is.
struct Sparse(Vec<u8>, u64);

impl Source for Sparse {
    fn len(&self) -> u64 {
        self.1
    }

    fn read_into(&self, offset: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        self.0.as_slice().read_into(offset, bytes)
    }
}

/// The split unit of every skeleton.
struct OneFile(PathBuf);

impl SplitFiles for OneFile {
    fn open(&self, _: &str, _: Option<&str>, _: u64) -> Option<Box<dyn Source + Send + Sync>> {
        Some(Box::new(Sparse(fs::read(&self.0).unwrap(), limits::SPLIT_BYTES / 2)))
    }
}

/// Regression: each of many units read one long file of split units, for hours.
#[test]
fn units_that_share_a_split_file_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    // The name and the id of a split unit, in GNU's form.
    let abbreviations =
        ".uleb128 1, 0x11\n .byte 0\n .uleb128 0x11, 1, 0x12, 7, 0x2130, 8, 0x2131, 7, 0, 0, 0";
    let entry = ".byte 1\n .quad code, 64\n .asciz \"one.dwo\"\n .quad 1";
    let units: String = (0..16).map(|number| unit(number, "0", entry)).collect();
    let library = linked(folder.path(), abbreviations, &units, "");
    let (split, file) = (OneFile(library.clone()), FileSource::open(&library).unwrap());
    let compiled = compile(&Inputs { split: Some(&split), ..Inputs::of(&file) }, None).unwrap();
    let is_bound = |problem: &Problem| matches!(problem.why, DwarfError::SharedSplit);
    assert!(compiled.problems().iter().any(is_bound), "{:?}", compiled.problems());
}

/// Regression: the search for each unit walked the whole hash table of a package without a free slot, for
/// minutes.
#[test]
fn units_that_a_full_package_lacks_are_missed_at_once() {
    const UNITS: usize = 1 << 17;
    let folder = tempfile::tempdir().unwrap();
    // The name and the id of a split unit, in GNU's form. A unit has 34 bytes after its length.
    let abbreviations =
        ".uleb128 1, 0x11\n .byte 0\n .uleb128 0x11, 1, 0x12, 7, 0x2130, 8, 0x2131, 7, 0, 0, 0";
    let unit = ".4byte 34\n .2byte 4\n .4byte 0\n .byte 8, 1\n .quad code, 64\n .asciz \"a\"\n .quad 2";
    let library = linked(folder.path(), abbreviations, &format!(".rept {UNITS}\n {unit}\n .endr"), "");
    // An index of version 2 with 2^21 slots, each of the unit 1.
    let index = ".section .debug_cu_index, \"\", %progbits\n .4byte 2, 0, 0, 1 << 21
        .fill 1 << 21, 8, 1\n .fill 1 << 21, 4, 0\n";
    fs::write(folder.path().join("package.s"), index).unwrap();
    run(folder.path(), "cc", &["-c", "-o", "code.dwp", "package.s"]);
    let open = |name| FileSource::open(&folder.path().join(name)).unwrap();
    let (file, package) = (open("code.so"), open("code.dwp"));
    let compiled = compile(&Inputs { package: Some(&package), ..Inputs::of(&file) }, None).unwrap();
    assert_eq!(compiled.all_problems(), UNITS);
    assert!(matches!(compiled.problems()[0].why, DwarfError::Split { dwo_id: 2, .. }), "{library:?}");
}

#[test]
fn a_unit_that_is_longer_than_its_section_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let library = assembled(folder.path(), "", LINES);
    let place = section(&library, ".debug_info").start;
    for length in [0x1000_0000u32, 0xffff_fff0, 0xffff_ffff] {
        patch(&library, place, &length.to_ne_bytes());
        assert!(matches!(read(&library), Err(DwarfError::UnitOutside { offset: 0, .. })), "{length:#x}");
    }
}

#[test]
fn a_unit_that_ends_after_the_last_address_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let library = assembled(folder.path(), "", LINES);
    // After the header of 11 bytes: the abbreviation's number, the start, and the length.
    let length = section(&library, ".debug_info").start + 11 + 1 + 8;
    patch(&library, length, &u64::MAX.to_ne_bytes());
    let overflow = problem(&library);
    assert!(matches!(overflow, DwarfError::Malformed(gimli::Error::AddressOverflow)), "{overflow}");
}

#[test]
fn a_list_of_ranges_that_is_after_the_last_offset_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    // DWARF 5 in the 64-bit format, whose unit names the first of the lists at `lists`.
    let abbreviations = "
    .uleb128 1, 0x11
    .byte 0
    .uleb128 0x11, 0x01, 0x74, 0x17, 0x55, 0x23, 0, 0
    .byte 0
";
    let unit = "
    .4byte 0xffffffff
    .8byte unit_end - unit_begin
unit_begin:
    .2byte 5
    .byte 1, 8
    .8byte 0
    .byte 1
    .quad code
    .8byte lists - lists_section
    .uleb128 0
unit_end:
    .section .debug_rnglists, \"\", %progbits
lists_section:
    .8byte 0
lists:
    .8byte -1
";
    let library = linked(folder.path(), abbreviations, unit, "");
    let outside = problem(&library);
    assert!(matches!(outside, DwarfError::Malformed(gimli::Error::UnsupportedOffset)), "{outside}");
}

/// The bytes of a section in its file.
fn section(path: &Path, name: &str) -> std::ops::Range<usize> {
    let bytes = fs::read(path).unwrap();
    let elf = goblin::elf::Elf::parse(&bytes).unwrap();
    let named = |section: &&goblin::elf::SectionHeader| elf.shdr_strtab.get_at(section.sh_name) == Some(name);
    elf.section_headers.iter().find(named).unwrap().file_range().unwrap()
}

/// Whether a section is compressed: compilers leave those alone that would not get shorter.
fn is_compressed(path: &Path, name: &str) -> bool {
    const SHF_COMPRESSED: u64 = 0x800;
    let bytes = fs::read(path).unwrap();
    let elf = goblin::elf::Elf::parse(&bytes).unwrap();
    let named = |section: &&goblin::elf::SectionHeader| elf.shdr_strtab.get_at(section.sh_name) == Some(name);
    elf.section_headers.iter().find(named).unwrap().sh_flags & SHF_COMPRESSED != 0
}

fn patch(path: &Path, at: usize, with: &[u8]) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at..at + with.len()].copy_from_slice(with);
    fs::write(path, bytes).unwrap();
}

/// A small program with compressed debug information.
fn compressed(folder: &Path) -> PathBuf {
    let source =
        "int twice(int a) { return 2 * a; }\nint main(int count, char **words) { return twice(count); }";
    fs::write(folder.join("program.c"), source).unwrap();
    run(folder, "cc", &["-O1", "-g", "-gz=zlib", "-o", "program", "program.c"]);
    folder.join("program")
}

#[test]
fn lengths_of_compressed_sections_that_lie_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let program = compressed(folder.path());
    assert!(is_compressed(&program, ".debug_info"));
    for name in [".debug_info", ".debug_abbrev", ".debug_line", ".debug_str"] {
        if !is_compressed(&program, name) {
            continue;
        }
        let at = section(&program, name).start;
        let bytes = fs::read(&program).unwrap();
        let declared = u64::from_ne_bytes(*bytes[at + 8..].first_chunk().unwrap());
        let with = |length: u64| {
            patch(&program, at + 8, &length.to_ne_bytes());
            let result = read(&program);
            patch(&program, at + 8, &declared.to_ne_bytes());
            result
        };
        assert!(matches!(with(u64::MAX), Err(DwarfError::Expansion { .. })), "{name}");
        let longer = with(declared + 1);
        let is_noticed =
            |error| matches!(error, DwarfError::SectionLength { .. } | DwarfError::Section { .. });
        assert!(longer.is_err_and(is_noticed), "{name}");
        assert!(with(declared).is_ok(), "{name}");
    }
    let at = section(&program, ".debug_info").start;
    patch(&program, at, &9u32.to_ne_bytes());
    assert!(matches!(read(&program), Err(DwarfError::Compression { method: 9, .. })));
    patch(&program, at, &1u32.to_ne_bytes());
    patch(&program, at + 24, &[0xff; 8]);
    assert!(matches!(read(&program), Err(DwarfError::Section { .. })));
}

/// A program without compression, its debug sections, and its index.
struct Sample {
    bytes: Vec<u8>,
    debug: Vec<usize>,
    index: Vec<u8>,
    addresses: Vec<u64>,
}

fn sample() -> &'static Sample {
    static SAMPLE: OnceLock<Sample> = OnceLock::new();
    SAMPLE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let source = "static inline __attribute__((always_inline)) int inner(int a) { return a * a; }\n\
                      int outer(int) __asm__(\"_Z5outeri\");\n\
                      int outer(int a) { int b = inner(a); return b + inner(b); }\n\
                      int main(int count, char **words) { return outer(count); }";
        fs::write(folder.path().join("program.c"), source).unwrap();
        run(folder.path(), "cc", &["-O2", "-g", "-o", "program", "program.c"]);
        let bytes = fs::read(folder.path().join("program")).unwrap();
        let elf = goblin::elf::Elf::parse(&bytes).unwrap();
        let is_debug = |name: Option<&str>| name.is_some_and(|name| name.starts_with(".debug_"));
        let sections = elf.section_headers.iter().filter(|it| is_debug(elf.shdr_strtab.get_at(it.sh_name)));
        let debug = sections.flat_map(|section| section.file_range().unwrap()).collect();
        let functions = elf.syms.iter().filter(|symbol| symbol.is_function() && symbol.st_size > 0);
        let addresses = functions.flat_map(|symbol| [symbol.st_value, symbol.st_value + 5]).collect();
        let compiled = compile(&Inputs::of(&&bytes[..]), None).unwrap();
        let path = folder.path().join("index");
        write(&compiled, &Identity::default(), &path).unwrap();
        Sample { index: fs::read(path).unwrap(), debug, addresses, bytes: bytes.clone() }
    })
}

/// Looks up all addresses of the sample and some others.
fn look_up<L: LookUp>(of: &mut L) {
    let mut frames = Vec::new();
    for address in sample().addresses.iter().copied().chain([0, u64::MAX]) {
        if of.frames(address, &mut frames).is_ok() {
            for frame in &frames {
                let _ = frame.function.map(|id| of.name(id).is_ok() && of.text(id).is_ok());
                let _ = frame.file.map(|id| of.text(id));
            }
        }
    }
}

/// Changes some bytes at these places.
fn damage(bytes: &mut [u8], places: &[usize], seed: u64) {
    let mut random = Random(seed | 1);
    for _ in 0..=random.below(6) {
        let place = places[random.below(places.len() as u64) as usize];
        bytes[place] = match random.below(3) {
            0 => random.below(256) as u8,
            1 => bytes[place] ^ (1 << random.below(8)),
            _ => [0, 1, 0x7f, 0x80, 0xff][random.below(5) as usize],
        };
    }
}

proptest! {
    #[test]
    fn damaged_debug_information_does_not_panic(seed: u64, is_direct: bool) {
        let mut bytes = sample().bytes.clone();
        damage(&mut bytes, &sample().debug, seed);
        let wanted = is_direct.then_some(&sample().addresses[..]);
        match compile(&Inputs::of(&&bytes[..]), wanted) {
            Ok(mut compiled) => {
                look_up(&mut compiled);
                let folder = tempfile::tempdir().unwrap();
                write(&compiled, &Identity::default(), &folder.path().join("index")).unwrap();
            }
            Err(error) => assert!(!matches!(error, DwarfError::Panicked)),
        }
    }

    #[test]
    fn a_damaged_index_does_not_panic(seed: u64, is_sealed: bool, cut in 0usize..4) {
        let mut bytes = sample().index.clone();
        let places: Vec<usize> = (0..bytes.len()).collect();
        damage(&mut bytes, &places, seed);
        if cut == 0 {
            bytes.truncate((seed % bytes.len() as u64) as usize);
        }
        if is_sealed {
            reseal(&mut bytes);
        }
        if let Ok(mut index) = Index::open(&bytes[..]) {
            look_up(&mut index);
        }
    }
}

/// Without forged checksums, each changed byte is noticed when its part is read.
#[test]
fn a_changed_byte_of_an_index_is_noticed() {
    let sample = sample();
    for place in 0..sample.index.len() {
        let mut bytes = sample.index.clone();
        bytes[place] ^= 0x40;
        let mut seen = Index::open(&bytes[..]).is_err();
        if let Ok(mut index) = Index::open(&bytes[..]) {
            let (mut frames, mut texts) = (Vec::new(), Vec::new());
            for &address in &sample.addresses {
                seen |= index.frames(address, &mut frames).is_err();
                texts.extend(frames.iter().flat_map(|frame| [frame.function, frame.file]).flatten());
            }
            seen |= texts.into_iter().any(|id| index.name(id).is_err() || index.text(id).is_err());
        }
        assert!(seen, "byte {place} of {}", sample.index.len());
    }
}

#[test]
fn other_files_and_versions_are_no_index() {
    let open = |bytes: &[u8]| Index::open(bytes).unwrap_err();
    assert!(matches!(open(b"<html>"), IndexError::NoIndex));
    assert!(matches!(open(&[]), IndexError::NoIndex));
    let mut bytes = sample().index.clone();
    bytes[8] += 1;
    assert!(matches!(open(&bytes), IndexError::Version(_)));
    let torn = &sample().index[..sample().index.len() - 1];
    assert!(matches!(open(torn), IndexError::Length { .. }));
}
