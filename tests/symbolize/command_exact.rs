//! `otlpprof symbolize` as a whole, compared with llvm-symbolizer: at the first use of an object, at the
//! second one, and from the index that is kept then. Frames at addresses that belong to no function stay as
//! they were, and are counted.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use goblin::elf::Elf;
use goblin::elf::program_header::{PF_X, PT_LOAD};
use goblin::elf::section_header::SHF_ALLOC;
use goblin::elf::sym::{STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT};

use otlpprof_elf::build_id;
use otlpprof_testkit::debug_information::{
    Random, addresses, compile_cpp, compile_go, compile_rust, expected, has_judges, run,
};
use otlpprof_testkit::toolchain::debug_objects;
use otlpprof_testkit::unnamed_frames::{
    Command, FrameForm, LIBRARY, Named, ProfiledObject, assert_only_lines_differ, lines_of, message,
    messages_of,
};
use prost::Message as _;

/// The addresses in functions of each object, each byte of code as likely as any other.
const COUNT: usize = 5_000;
/// The most addresses of each kind that chance seldom finds.
const FEW: usize = 250;

/// The right treatment of the frame at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    /// Give it these lines.
    Named(Vec<Named>),
    /// Leave it: the address is in code, and no function has it.
    NoFunction,
    /// Leave it: the address is not in code.
    OutsideCode,
}

/// The addresses that a symbol has. A symbol without a size reaches to the end of its section.
struct Symbol {
    name: String,
    start: u64,
    end: u64,
    has_size: bool,
}

impl Symbol {
    /// Whether the compiler has moved the code away from its function as seldom executed.
    fn is_cold(&self) -> bool {
        self.name.contains(".cold")
    }
}

/// An object's symbols and segments, independently of the reader under test.
struct Layout {
    symbols: Vec<Symbol>,
    code: Vec<(u64, u64)>,
    /// An address in each part of the object that has no code, and addresses after its end.
    outside: Vec<u64>,
}

impl Layout {
    fn of(object: &Path) -> Self {
        let bytes = fs::read(object).unwrap();
        let elf = Elf::parse(&bytes).unwrap();
        let loads = || elf.program_headers.iter().filter(|header| header.p_type == PT_LOAD);
        let code = loads().filter(|header| header.p_flags & PF_X != 0);
        let code: Vec<_> = code.map(|header| (header.p_vaddr, header.p_vaddr + header.p_memsz)).collect();
        let end = loads().map(|header| header.p_vaddr + header.p_memsz).max().unwrap();
        let sections = elf.section_headers.iter().filter(|section| section.is_alloc() && section.sh_size > 0);
        let middles = sections.map(|section| section.sh_addr + section.sh_size / 2);
        let outside = middles.chain([end + 0x1_0000, end + 0x1000_0000, u64::MAX]);
        let outside = outside.filter(|&address| !is_in(&code, address)).collect();
        let symbol = |symbol: goblin::elf::Sym| {
            let kinds = [STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT];
            let section = elf.section_headers.get(symbol.st_shndx)?;
            let is_alloc = symbol.st_shndx != 0 && section.sh_flags & u64::from(SHF_ALLOC) != 0;
            let name = elf.strtab.get_at(symbol.st_name).filter(|name| !name.is_empty())?;
            let (start, size) = (symbol.st_value, symbol.st_size);
            let end = if size > 0 { start + size } else { section.sh_addr + section.sh_size };
            (is_alloc && kinds.contains(&symbol.st_type())).then(|| Symbol {
                name: name.to_owned(),
                start,
                end,
                has_size: size > 0,
            })
        };
        Self { symbols: elf.syms.iter().filter_map(symbol).collect(), code, outside }
    }

    /// The ranges of code that no symbol has: the padding between functions, tables of jumps to other
    /// libraries, the ends of sections.
    fn gaps(&self) -> Vec<(u64, u64)> {
        let mut symbols: Vec<(u64, u64)> =
            self.symbols.iter().map(|symbol| (symbol.start, symbol.end)).collect();
        symbols.sort_unstable();
        let mut gaps = Vec::new();
        for &(start, end) in &self.code {
            let mut at = start;
            for &(first, after) in symbols.iter().filter(|&&(_, after)| after > start) {
                if first >= end {
                    break;
                }
                if at < first {
                    gaps.push((at, first));
                }
                at = at.max(after);
            }
            if at < end {
                gaps.push((at, end));
            }
        }
        gaps
    }

    /// Bytes of gaps: the first, the last, and any other.
    fn bytes_of_gaps(&self) -> Vec<u64> {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let gaps = self.gaps();
        let few = gaps.iter().step_by(gaps.len().div_ceil(FEW / 3).max(1));
        let bytes = few.flat_map(|&(start, end)| [start, start + random.below(end - start), end - 1]);
        let mut bytes: Vec<u64> = bytes.collect();
        bytes.sort_unstable();
        bytes.dedup();
        bytes
    }

    /// The last byte of functions, at which the caller of a function that does not return is found, and the
    /// first and the last byte of cold parts.
    fn seams(&self) -> Vec<u64> {
        let sized: Vec<&Symbol> =
            self.symbols.iter().filter(|symbol| symbol.has_size && is_in(&self.code, symbol.start)).collect();
        let few = |count: usize| count.div_ceil(FEW).max(1);
        let cold: Vec<&&Symbol> = sized.iter().filter(|symbol| symbol.is_cold()).collect();
        let ends = sized.iter().step_by(few(sized.len())).map(|symbol| symbol.end - 1);
        let cold = cold.iter().step_by(few(cold.len())).flat_map(|cold| [cold.start, cold.end - 1]);
        ends.chain(cold).collect()
    }
}

fn is_in(ranges: &[(u64, u64)], address: u64) -> bool {
    ranges.iter().any(|&(start, end)| (start..end).contains(&address))
}

/// Addresses of an object, and the right treatment of each.
struct Truth {
    addresses: Vec<u64>,
    outcomes: Vec<Outcome>,
    /// Whether the object has cold parts, to which some of the addresses belong then.
    has_cold_parts: bool,
}

impl Truth {
    /// The truth about `judge`, a file with a symbol table and debug information.
    ///
    /// In functions, llvm-symbolizer is right and names every address. Elsewhere the sizes of symbols decide:
    /// llvm-symbolizer names an address that no symbol has if a symbol without a size precedes the address,
    /// in another section too. Outside code it names variables.
    fn of(judge: &Path) -> Self {
        let (layout, label) = (Layout::of(judge), judge.display());
        let inside = [addresses(judge, COUNT), layout.seams()].concat();
        let asked = [&inside[..], &layout.bytes_of_gaps()].concat();
        let mut truth: Vec<(u64, Outcome)> = Vec::new();
        for (number, (&address, lines)) in asked.iter().zip(expected(judge, &asked)).enumerate() {
            let named: Vec<&Named> = lines.iter().filter(|line| !line.1.is_empty()).collect();
            let outcome = match named[..] {
                [] => Outcome::NoFunction,
                [(_, name, _, 0, 0)] if number >= inside.len() => {
                    let mut symbols = layout.symbols.iter();
                    let is_unsized = symbols.any(|symbol| symbol.name == *name && !symbol.has_size);
                    assert!(is_unsized, "{label} {address:#x}: {lines:?}");
                    Outcome::NoFunction
                }
                _ => Outcome::Named(lines),
            };
            let is_named = matches!(outcome, Outcome::Named(_));
            assert!(is_named || number >= inside.len(), "{label} {address:#x}: no function");
            truth.push((address, outcome));
        }
        truth.extend(layout.outside.iter().map(|&address| (address, Outcome::OutsideCode)));
        truth.sort_by_key(|(address, _)| *address);
        truth.dedup_by_key(|(address, _)| *address);
        let (addresses, outcomes) = truth.into_iter().unzip();
        let has_cold_parts = layout.symbols.iter().any(Symbol::is_cold);
        let truth = Self { addresses, outcomes, has_cold_parts };
        for outcome in [Outcome::NoFunction, Outcome::OutsideCode] {
            assert!(truth.count(&outcome) > 0, "{label}: {outcome:?} at no address");
        }
        truth
    }

    fn count(&self, outcome: &Outcome) -> usize {
        self.outcomes.iter().filter(|found| *found == outcome).count()
    }
}

/// The names and times of the files in the folder of indexes.
fn indexes(command: &Command) -> Vec<(PathBuf, SystemTime)> {
    let entries = fs::read_dir(command.indexes()).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> =
        entries.map(|entry| (entry.path(), entry.metadata().unwrap().modified().unwrap())).collect();
    files.sort();
    files
}

/// Asserts that the command treats all frames of an object rightly, three times. The object's files are below
/// a folder. Returns the number of addresses.
fn assert_exact(truth: &Truth, object: &Path, folder: &Path) -> usize {
    let command = Command::new();
    let profiled = ProfiledObject::of(object, "/opt/app/object");
    let form = if build_id::of_file(object).is_ok() { FrameForm::Agent } else { FrameForm::Htlhash };
    let (before, locations) = message(&profiled, form, &truth.addresses);
    let input = command.path("in.otlp");
    fs::write(&input, before.encode_to_vec()).unwrap();
    let (nowhere, outside) = (truth.count(&Outcome::NoFunction), truth.count(&Outcome::OutsideCode));
    let all = truth.addresses.len();
    let counts = [
        format!("{} of {all} native frames resolved, of 1 objects\n", all - nowhere - outside),
        format!(
            "object: {nowhere} frames: addresses outside every function that is known (debug information)\n"
        ),
        format!("object: {outside} frames: addresses outside its code\n"),
    ];
    let mut made = Vec::new();
    for use_of_object in ["first use", "second use", "kept index"] {
        let label = format!("{}, {use_of_object}", object.display());
        let options = ["--path", folder.to_str().unwrap(), "--not-this-machine"];
        let (out, stderr) = command.symbolize(&input, "out.otlp", &options);
        let after = messages_of(&out).remove(0);
        let mut wrong = Vec::new();
        let mut resolved = Vec::new();
        for ((&address, outcome), &location) in truth.addresses.iter().zip(&truth.outcomes).zip(&locations) {
            let lines = lines_of(&after, location);
            let must = match outcome {
                Outcome::Named(lines) => {
                    resolved.push(location);
                    lines.clone()
                }
                _ => Vec::new(),
            };
            if lines != must {
                wrong.push(format!("{address:#x}: {lines:#?}\nllvm-symbolizer: {must:#?}"));
            }
        }
        let shown = wrong[..wrong.len().min(3)].join("\n");
        assert!(wrong.is_empty(), "{label}: {} of {all} frames are wrong\n{shown}", wrong.len());
        assert_only_lines_differ(&before, &after, &resolved);
        for count in &counts {
            assert!(stderr.contains(count), "{label}: {count:?} is missing: {stderr}");
        }
        match use_of_object {
            "second use" => made = indexes(&command),
            "kept index" => assert_eq!(indexes(&command), made, "{label}: made again"),
            _ => {}
        }
    }
    assert!(!made.is_empty(), "no index is kept");
    all
}

#[test]
fn libjvm_is_exact() {
    let Some(folder) = debug_objects().filter(|_| has_judges()) else { return };
    let truth = Truth::of(&folder.join("libjvm.debug"));
    assert!(truth.has_cold_parts);
    assert!(assert_exact(&truth, &folder.join("libjvm.so"), &folder) > COUNT);
}

#[test]
fn the_c_library_is_exact() {
    let Some(folder) = debug_objects().filter(|_| has_judges()) else { return };
    let truth = Truth::of(&folder.join("libc.debug"));
    assert!(assert_exact(&truth, &folder.join("libc.so"), &folder) > COUNT);
}

#[test]
fn the_sample_library_is_exact() {
    if has_judges() {
        let library = Path::new(LIBRARY);
        assert_exact(&Truth::of(library), library, library.parent().unwrap());
    }
}

#[test]
fn a_rust_program_is_exact() {
    if !has_judges() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compile_rust(folder.path(), "program", &["-C", "link-arg=-Wl,--build-id"]);
    assert!(assert_exact(&Truth::of(&program), &program, folder.path()) > COUNT);
}

#[test]
fn a_go_program_is_exact() {
    if !has_judges() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile_go(folder.path()) else { return };
    assert!(assert_exact(&Truth::of(&program), &program, folder.path()) > COUNT);
}

#[test]
fn files_compressed_by_dwz_are_exact() {
    if !has_judges() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-g", "-DLARGE", "-Wl,--build-id", "-shared", "-fPIC", "-DLIBRARY"];
    let program = compile_cpp(folder.path(), "program", &flags[..3]);
    compile_cpp(folder.path(), "library", &flags);
    let shared = folder.path().join("shared");
    fs::create_dir(&shared).unwrap();
    for name in ["program", "library"] {
        fs::copy(folder.path().join(name), shared.join(name)).unwrap();
    }
    run(&shared, "dwz", &["-m", "common", "program", "library"]);
    // LLVM does not read supplementary files, so that the judge is the file before.
    assert!(assert_exact(&Truth::of(&program), &shared.join("program"), &shared) > COUNT);
}

#[test]
fn split_debug_information_is_exact() {
    if !has_judges() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-gsplit-dwarf", "-DLARGE", "-gdwarf-5", "-Wl,--build-id"];
    let program = compile_cpp(folder.path(), "program", &flags);
    let truth = Truth::of(&program);
    assert!(assert_exact(&truth, &program, folder.path()) > COUNT);
    // From a package, without the files of units.
    let packed = tempfile::tempdir().unwrap();
    run(folder.path(), "llvm-dwp-19", &["-e", "program", "-o", "program.dwp"]);
    for name in ["program", "program.dwp"] {
        fs::rename(folder.path().join(name), packed.path().join(name)).unwrap();
    }
    drop(folder);
    assert!(assert_exact(&truth, &packed.path().join("program"), packed.path()) > COUNT);
}
