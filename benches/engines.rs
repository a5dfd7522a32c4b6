//! What each engine costs beside async-profiler's of the same name, and how much either writes. scripts/bench-peers.sh sets
//! what this needs.
//!
//! `programs.EngineWork` does the same work of one kind in each run and tells the CPU time of that part alone. The
//! configurations take turns, each turn begins with another one, and a figure compares runs of one turn. One of them is no
//! agent once more: what it seems to cost is the noise.

mod measure;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use measure::Spread;
use measure::profilers::{self, Profiler, Profilers, named_number};

/// A row of the table: the program's work, and the engine's option, which both have.
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

/// Whose run it is: nobody's, nobody's once more, or a profiler's.
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

/// What one run gave.
#[derive(Clone, Copy)]
struct Run {
    cpu_ns: f64,
    file_bytes: f64,
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
            let bytes = Spread::of(with.iter().map(|run| run.file_bytes / 1024.0).collect());
            println!(
                "    {:<15} {:>+6.2} % [{:+.2} {:+.2}]  {:>8.1} KiB",
                side.name(),
                added.median,
                added.lower_quartile,
                added.upper_quartile,
                bytes.median,
            );
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
        let file_bytes = std::fs::metadata(&self.file).map_or(0.0, |file| file.len() as f64);
        Run { cpu_ns: named_number(&printed, "cpu_ns"), file_bytes }
    }
}
