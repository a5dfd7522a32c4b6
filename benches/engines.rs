//! Measures the cost of each engine beside the engine of the same name in async-profiler, and the size of
//! their output. scripts/bench-peers.sh sets the variables that this benchmark needs.
//!
//! `programs.EngineWork` does the same work of one kind in each run and prints the CPU time of that part
//! alone. The configurations take turns, each turn begins with another one, and a figure compares runs of one
//! turn. One configuration is a second run without an agent: its apparent cost is the noise.
//!
//! The size of the output is the size of the file, and the size of the compressed file, as it would be sent.
//! Beside it are the number of samples in the file (times that a stack was taken, or a waiting thread was
//! counted once more), the number of sums that they are combined to, and the number of bytes in the
//! functions' system names: those of methods with their descriptors.

mod measure;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use measure::Spread;
use measure::profilers::{self, Profiler, Profilers, named_number};
use otlpprof_otlp::lookup::{DictionaryTables as _, Lookup};
use otlpprof_otlp::read;
use otlpprof_otlp::wire::ProfilesDictionary;

/// A row of the table: the program's work, and the engine's option, which both profilers have.
#[derive(Clone, Copy)]
struct Cell {
    work: &'static [&'static str],
    option: &'static str,
}

const fn cell(work: &'static [&'static str], option: &'static str) -> Cell {
    Cell { work, option }
}

const CELLS: [Cell; 8] = [
    cell(&["wall", "20"], "wall=10ms"),
    cell(&["wall", "20"], "wall=1ms"),
    cell(&["wall", "2000"], "wall=10ms"),
    cell(&["wall", "2000"], "wall=1ms"),
    cell(&["alloc"], "alloc=512k"),
    cell(&["alloc"], "alloc=64k"),
    cell(&["lock"], "lock=10us"),
    cell(&["nativemem"], "nativemem=512k"),
];

/// The agent of a run: none, none once more, or a profiler.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    None,
    Again,
    Of(Profiler),
}

impl Side {
    const fn name(self) -> &'static str {
        match self {
            Self::None => "no agent",
            Self::Again => "no agent again",
            Self::Of(profiler) => profiler.name(),
        }
    }
}

/// The results of one run.
#[derive(Clone, Copy)]
struct Run {
    cpu_ns: f64,
    written: Written,
}

/// The output of a profiler.
#[derive(Clone, Copy, Default)]
struct Written {
    bytes: f64,
    compressed_bytes: f64,
    samples: f64,
    /// The bytes of the strings that are used only as system names of functions.
    system_name_bytes: f64,
    /// The number of `Sample` messages, in only one profile if an engine writes two of the same samples.
    summed_up: f64,
}

struct Bench {
    profilers: Profilers,
    turns: usize,
    file: PathBuf,
}

fn main() {
    let Some(profilers) = Profilers::from_environment() else {
        println!("engines: NOT MEASURED, its variables are not set (scripts/bench-peers.sh does)");
        return;
    };
    let file = std::env::temp_dir().join(format!("otlpprof-engines-{}.otlp", std::process::id()));
    let bench = Bench { profilers, turns: profilers::number("TURNS", 7) as usize, file };
    let wanted = profilers::list("ENGINES", "wall:alloc:lock:nativemem");
    for home in profilers::list("JDKS", "") {
        println!(
            "engines, {} ({} alternating turns; median [quartiles])",
            profilers::jdk_name(&home),
            bench.turns
        );
        for cell in CELLS.iter().filter(|cell| wanted.iter().any(|name| *name == cell.work[0])) {
            bench.compare(&home, *cell);
        }
    }
    let _ = std::fs::remove_file(&bench.file);
}

impl Bench {
    fn compare(&self, home: &str, cell: Cell) {
        let mut sides = vec![Side::None, Side::Again, Side::Of(Profiler::Ours)];
        if self.profilers.has_peer() {
            sides.push(Side::Of(Profiler::Theirs));
        }
        let mut runs: Vec<Vec<Run>> = vec![vec![]; sides.len()];
        for turn in 0..self.turns {
            for place in 0..sides.len() {
                let index = (turn + place) % sides.len();
                runs[index].push(self.run(home, cell, sides[index]));
            }
        }
        println!("  {} {}: CPU time added, and written", cell.work.join(" "), cell.option);
        for (side, with) in sides.iter().zip(&runs).skip(1) {
            let percent = |(with, without): (&Run, &Run)| 100.0 * (with.cpu_ns / without.cpu_ns - 1.0);
            let added = Spread::of(with.iter().zip(&runs[0]).map(percent).collect());
            print!(
                "    {:<15} {:>+6.2} % [{:+.2} {:+.2}]",
                side.name(),
                added.median,
                added.lower_quartile,
                added.upper_quartile,
            );
            if let Side::Of(_) = side {
                let median = |part: fn(&Written) -> f64| {
                    Spread::of(with.iter().map(|run| part(&run.written)).collect()).median
                };
                print!(
                    "  {:>7.1} KiB ({:.1} system names), {:>6.1} compressed, of {:>7} samples in {:>4}: \
                     {:>6.2} bytes a sample, compressed {:.2}",
                    median(|written| written.bytes / 1024.0),
                    median(|written| written.system_name_bytes / 1024.0),
                    median(|written| written.compressed_bytes / 1024.0),
                    median(|written| written.samples),
                    median(|written| written.summed_up),
                    median(|written| written.bytes / written.samples),
                    median(|written| written.compressed_bytes / written.samples),
                );
            }
            println!();
        }
    }

    fn run(&self, home: &str, cell: Cell, side: Side) -> Run {
        let _ = std::fs::remove_file(&self.file);
        let option = match side {
            Side::None | Side::Again => None,
            Side::Of(profiler) => Some(self.profilers.engine_option(profiler, cell.option, &self.file)),
        };
        let rest = [
            "-XX:+UseSerialGC",
            "-Xmx256m",
            "-Xss512k",
            "-cp",
            &self.profilers.classes,
            "programs.EngineWork",
        ];
        let arguments =
            option.as_deref().into_iter().chain(rest).chain(cell.work.iter().copied()).map(OsStr::new);
        let printed = profilers::java(Path::new(home), &[], arguments);
        let written = option.map_or_else(Written::default, |_| written(&self.file));
        Run { cpu_ns: named_number(&printed, "cpu_ns"), written }
    }
}

/// # Panics
/// If the file is not one of profiles.
fn written(file: &Path) -> Written {
    let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut compressed = GzEncoder::new(vec![], Compression::default());
    compressed.write_all(&bytes).expect("memory takes everything");
    let compressed_bytes = compressed.finish().expect("memory takes everything").len() as f64;
    let mut written = Written { bytes: bytes.len() as f64, compressed_bytes, ..Written::default() };
    for message in read::read(&bytes) {
        let message = message.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        written.system_name_bytes += message.data.dictionary.as_ref().map_or(0.0, system_name_bytes);
        let lookup = Lookup::new(&message.data);
        let scopes = message.data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
        let profiles = scopes.flat_map(|scope| &scope.profiles);
        // Of an engine's two profiles only the first counts: the number of allocated objects, for example, is
        // reported for the same samples as their bytes.
        let firsts = profiles.filter(|profile| {
            let name = profile.sample_type.as_ref().and_then(|kind| lookup.string(kind.type_strindex));
            !matches!(name, Some("alloc_objects" | "delay"))
        });
        for profile in firsts {
            let unit = profile.sample_type.as_ref().and_then(|kind| lookup.string(kind.unit_strindex));
            let each = if unit == Some("bytes") { profile.period as f64 } else { 1.0 };
            written.samples += profile
                .samples
                .iter()
                .flat_map(|sample| &sample.values)
                .map(|value| *value as f64)
                .sum::<f64>()
                / each;
            written.summed_up += profile.samples.len() as f64;
        }
    }
    written.samples = written.samples.round();
    written
}

/// Returns the number of bytes of the strings that only functions' system names refer to, including the tag
/// and the length of each.
fn system_name_bytes(dictionary: &ProfilesDictionary) -> f64 {
    let functions = &dictionary.function_table;
    let others: BTreeSet<_> =
        functions.iter().flat_map(|function| [function.name_strindex, function.filename_strindex]).collect();
    let system_names: BTreeSet<_> = functions.iter().map(|function| function.system_name_strindex).collect();
    let lengths =
        system_names.difference(&others).map(|index| dictionary.string_table[*index as usize].len());
    lengths.map(|length| (length + if length < 128 { 2 } else { 3 }) as f64).sum()
}
