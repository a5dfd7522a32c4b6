//! Objects with debug information, addresses in them, and llvm-symbolizer's answers.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use otlpprof_dwarf::{LookUp, SourceFrame, TextId};
use otlpprof_elf::symbols::demangle::demangle;
use serde_json::Value;

use crate::commands::succeed;
use crate::skipped::not_tested;
use crate::this_build;
use crate::toolchain::go;

/// A function, file, line and column; empty and 0 where they are unknown.
pub type Answer = (String, String, u32, u32);

/// A line of a location: a function, its linkage name, file, line and column.
type Line = (String, String, String, i64, i64);

const SYMBOLIZER: &str = "llvm-symbolizer-19";

/// The folder of the source files to compile.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("debug_information")
}

/// Whether the programs that the tests compare with are there. Reports what is not tested otherwise.
pub fn has_judges() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let is_there = |program: &&str| Command::new(program).arg("--version").output().is_ok();
    *FOUND.get_or_init(|| {
        let missing =
            [SYMBOLIZER, "llvm-dwp-19", "dwz", "g++"].into_iter().find(|program| !is_there(program));
        if let Some(missing) = missing {
            let why = format!("debug information, without {missing} (scripts/install-toolchain.sh llvm)");
            not_tested(&why);
        }
        missing.is_none()
    })
}

/// Runs a program in a folder, which must succeed.
#[track_caller]
pub fn run(folder: &Path, program: &str, arguments: &[&str]) {
    succeed(Command::new(program).args(arguments).current_dir(folder));
}

/// Compiles `program.cpp` and `lengths.cpp` in a folder to `name`, with these flags.
pub fn compile_cpp(folder: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let [program, lengths] = ["program.cpp", "lengths.cpp"].map(|name| sources().join(name));
    let files = [program.to_str().unwrap(), lengths.to_str().unwrap()];
    let arguments = [&["-O2", "-o", name], flags, &files].concat();
    run(folder, "g++", &arguments);
    folder.join(name)
}

/// Compiles `program.rs` in a folder to `name`, with these flags.
pub fn compile_rust(folder: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let source = sources().join("program.rs");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let usual = ["-O", "-g", "--edition=2024", "-o", name];
    run(folder, &rustc, &[&usual[..], flags, &[source.to_str().unwrap()]].concat());
    folder.join(name)
}

/// Compiles `program.go` in a folder. Nothing without Go, which is reported.
pub fn compile_go(folder: &Path) -> Option<PathBuf> {
    let go = go("Go's debug information")?;
    let program = folder.join("program");
    let mut command = Command::new(go);
    command.args(["build", "-o"]).arg(&program).arg(sources().join("program.go"));
    // The first build of Go's own packages takes long.
    command.env("GOCACHE", this_build::temporary_folder().join("go-build")).env("GO111MODULE", "off");
    assert!(command.status().unwrap().success());
    Some(program)
}

/// Pseudo-random numbers (xorshift), the same in each run.
pub struct Random(pub u64);

impl Random {
    /// A number from 0 to below the bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(bound)) >> 64) as u64
    }
}

/// The functions of an object's `.symtab` by nm: address and size.
pub fn functions(object: &Path) -> Vec<(u64, u64)> {
    let output = Command::new("nm").args(["--defined-only", "-S"]).arg(object).output().unwrap();
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |word: Option<&str>| word.and_then(|word| u64::from_str_radix(word, 16).ok());
    let functions = listing.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (address, size, kind) = (number(words.next())?, number(words.next())?, words.next()?);
        (matches!(kind, "T" | "t" | "W" | "w" | "i") && size > 0).then_some((address, size))
    });
    functions.collect()
}

/// Addresses in functions, each byte of code as likely as any other. Where there are fewer bytes of code than
/// that, all of them. Ascending, each once.
#[track_caller]
pub fn addresses(object: &Path, count: usize) -> Vec<u64> {
    let functions = functions(object);
    let all: u64 = functions.iter().map(|(_, size)| size).sum();
    assert!(all > 0, "{} has no functions", object.display());
    let addresses: BTreeSet<u64> = if all <= count as u64 {
        functions.iter().flat_map(|&(start, size)| start..start + size).collect()
    } else {
        let mut ends = Vec::with_capacity(functions.len());
        functions.iter().fold(0, |before, (_, size)| {
            ends.push(before + size);
            before + size
        });
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        let mut place = || {
            let byte = random.below(all);
            let function = ends.partition_point(|&end| end <= byte);
            functions[function].0 + (ends[function] - 1 - byte)
        };
        let mut addresses = BTreeSet::new();
        while addresses.len() < count {
            addresses.insert(place());
        }
        addresses
    };
    addresses.into_iter().collect()
}

/// The answers of llvm-symbolizer, which are empty for addresses that it knows nothing of.
#[track_caller]
pub fn judged(object: &Path, addresses: &[u64]) -> Vec<Vec<Answer>> {
    let mut command = Command::new(SYMBOLIZER);
    command.arg(format!("--obj={}", object.display()));
    command.args(["-f=linkage", "--no-demangle", "-i", "--output-style=JSON"]);
    // Without servers: the object has all that is needed.
    command.env_remove("DEBUGINFOD_URLS").current_dir(object.parent().unwrap());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let asked: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(asked.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let answers: Vec<_> = lines.lines().map(answer_of_json).collect();
    assert_eq!(answers.len(), addresses.len());
    answers
}

fn answer_of_json(line: &str) -> Vec<Answer> {
    let answer: Value = serde_json::from_str(line).unwrap();
    let text = |of: &Value, name: &str| of[name].as_str().unwrap_or_default().to_owned();
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap_or_default() as u32;
    let frame = |of: &Value| {
        (text(of, "FunctionName"), text(of, "FileName"), number(of, "Line"), number(of, "Column"))
    };
    let frames: Vec<Answer> = answer["Symbol"].as_array().into_iter().flatten().map(frame).collect();
    let is_unknown = frames.iter().all(|frame| *frame == (String::new(), String::new(), 0, 0));
    if is_unknown { Vec::new() } else { frames }
}

/// llvm-symbolizer's answers as lines of locations.
pub fn expected(object: &Path, vaddrs: &[u64]) -> Vec<Vec<Line>> {
    let named = |(function, file, line, column): (String, String, u32, u32)| {
        (demangle(&function), function, file, line.into(), column.into())
    };
    judged(object, vaddrs).into_iter().map(|chain| chain.into_iter().map(named).collect()).collect()
}

/// The text of a function or file, whose name for people is asserted.
fn text_of<L: LookUp<Error: Debug>>(id: TextId, of: &mut L) -> String {
    let text = of.text(id).unwrap().into_owned();
    assert_eq!(of.name(id).unwrap(), demangle(&text));
    text
}

/// Our answers.
pub fn answers<L: LookUp<Error: Debug>>(of: &mut L, addresses: &[u64]) -> Vec<Vec<Answer>> {
    let mut texts = HashMap::new();
    let mut frames = Vec::new();
    let mut answer = |frame: &SourceFrame, of: &mut L| {
        let mut text = |id: Option<_>| match id {
            Some(id) => texts.entry(id).or_insert_with(|| text_of(id, of)).clone(),
            None => String::new(),
        };
        (text(frame.function), text(frame.file), frame.line, frame.column)
    };
    let all = addresses.iter().map(|&address| {
        of.frames(address, &mut frames).unwrap();
        frames.iter().map(|frame| answer(frame, of)).collect()
    });
    all.collect()
}

/// Asserts that all answers are equal, and shows the first that differ.
#[track_caller]
pub fn assert_equal(what: &str, addresses: &[u64], ours: &[Vec<Answer>], judged: &[Vec<Answer>]) {
    let pairs = addresses.iter().zip(ours.iter().zip(judged));
    let different: Vec<_> = pairs.filter(|(_, (ours, judged))| ours != judged).collect();
    let shown: Vec<String> = different
        .iter()
        .take(3)
        .map(|(address, (ours, judged))| format!("{address:#x}: {ours:#?}\nllvm-symbolizer: {judged:#?}"))
        .collect();
    let (count, all) = (different.len(), addresses.len());
    assert!(different.is_empty(), "{what}: {count} of {all} answers differ\n{}", shown.join("\n"));
}
