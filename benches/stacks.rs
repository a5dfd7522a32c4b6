//! Measures the share of stacks that reach their root, beside async-profiler's of the same programs: by JDK,
//! program and walker. scripts/bench-peers.sh sets the variables that this benchmark needs;
//! docs/benchmarks.md explains the table.
//!
//! Both sides take turns. Each run is a separate process and begins with the VM's start. One classifier
//! (`otlpprof check-stacks --known-roots`) reads both results. A cell ends when each side has SAMPLES
//! samples.

mod measure;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use measure::profilers::{self, Profiler, Profilers};

/// The sampling interval.
const INTERVAL: &str = "100us";

/// The largest number of runs of a side in a cell, for a program that uses little CPU time.
const MOST_RUNS: usize = 40;

/// A program, and the way it is run.
struct Program {
    name: &'static str,
    flags: &'static [&'static str],
    /// The class and its arguments; SECONDS, SOURCES, SCRATCH and H2 are replaced.
    command: &'static [&'static str],
    library: Library,
    grammar: Option<&'static str>,
    needs: Need,
}

#[derive(Clone, Copy, PartialEq)]
enum Library {
    WithoutFramePointers,
    WithFramePointers,
}

#[derive(Clone, Copy, PartialEq)]
enum Need {
    Nothing,
    Compiler,
    VirtualThreads,
    H2,
}

const SITUATIONS: Option<&str> = Some("java/testprograms/grammars/Situations.txt");

/// A join, sorts and aggregates over some hundred thousand rows.
const H2_SQL: &str = "\
    CREATE TABLE t AS SELECT x, MOD(x * 7919, 5003) k, 'name ' || x s FROM SYSTEM_RANGE(1, 200000); \
    CREATE INDEX i ON t(k); \
    SELECT COUNT(*), MAX(a.s || b.s) FROM t a JOIN t b ON a.k = b.k WHERE a.x < 40000; \
    SELECT k, COUNT(*), SUM(x), MIN(s) FROM t GROUP BY k ORDER BY 3 DESC LIMIT 5; \
    SELECT COUNT(DISTINCT REVERSE(s)) FROM (SELECT UPPER(s) s FROM t ORDER BY s);";

const fn situation(name: &'static str, command: &'static [&'static str]) -> Program {
    Program {
        name,
        flags: &[],
        command,
        library: Library::WithoutFramePointers,
        grammar: SITUATIONS,
        needs: Need::Nothing,
    }
}

/// Returns a program with virtual threads whose frozen frames a collector moves all the time.
const fn collected(name: &'static str, flags: &'static [&'static str]) -> Program {
    let program = situation(name, &["programs.VirtualThreadTree", "SECONDS"]);
    Program { flags, grammar: None, needs: Need::VirtualThreads, ..program }
}

const PROGRAMS: &[Program] = &[
    situation("upcalls", &["programs.Situations", "upcalls", "SECONDS"]),
    Program {
        library: Library::WithFramePointers,
        ..situation("upcalls, frame pointers", &["programs.Situations", "upcalls", "SECONDS"])
    },
    situation("allocation", &["programs.Situations", "allocation", "SECONDS"]),
    situation("locks", &["programs.Situations", "locks", "SECONDS"]),
    situation("polymorphic calls", &["programs.Situations", "calls", "SECONDS"]),
    situation("exceptions", &["programs.Situations", "exceptions", "SECONDS"]),
    situation("strings and lambdas", &["programs.Situations", "strings", "SECONDS"]),
    Program { flags: &["-Xint"], ..situation("-Xint, calls", &["programs.Situations", "calls", "SECONDS"]) },
    Program {
        flags: &["-Xint"],
        ..situation("-Xint, upcalls", &["programs.Situations", "upcalls", "SECONDS"])
    },
    Program { grammar: None, ..situation("demo", &["programs.Demo", "SECONDS"]) },
    Program {
        grammar: None,
        needs: Need::Compiler,
        ..situation("javac", &["programs.Compiler", "SECONDS", "SOURCES", "SCRATCH"])
    },
    Program {
        grammar: None,
        needs: Need::VirtualThreads,
        ..situation("virtual threads", &["programs.VirtualThreads", "SECONDS"])
    },
    collected("virtual threads, G1", &["-XX:+UseG1GC"]),
    collected("virtual threads, Parallel", &["-XX:+UseParallelGC"]),
    collected("virtual threads, Serial", &["-XX:+UseSerialGC"]),
    collected("virtual threads, Shenandoah", &["-XX:+UseShenandoahGC"]),
    collected("virtual threads, ZGC", &["-XX:+UseZGC"]),
    Program {
        grammar: None,
        needs: Need::H2,
        ..situation("H2 database", &["org.h2.tools.Shell", "-url", "jdbc:h2:mem:", "-sql", H2_SQL])
    },
];

/// The settings from the environment.
struct Bench {
    profilers: Profilers,
    libraries: [String; 2],
    h2: Option<String>,
    samples: u64,
    seconds: u64,
    scratch: PathBuf,
}

/// The results of all runs of one side.
#[derive(Clone, Copy, Default)]
struct Counts {
    samples: u64,
    broken: u64,
    illegal: u64,
}

fn main() {
    let variable = |name: &str| std::env::var(name).ok();
    let (Some(profilers), Some(library), Some(with_frame_pointers)) =
        (Profilers::from_environment(), variable("DDPROFTEST"), variable("DDPROFTEST_FP"))
    else {
        println!("stacks: NOT MEASURED, its variables are not set (scripts/bench-peers.sh does)");
        return;
    };
    let scratch = std::env::temp_dir().join(format!("otlpprof-stacks-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).expect("a temporary folder");
    let bench = Bench {
        profilers,
        libraries: [library, with_frame_pointers],
        h2: variable("H2"),
        samples: profilers::number("SAMPLES", 200_000),
        seconds: profilers::number("SECONDS", 8),
        scratch,
    };
    let walkers = profilers::list("WALKERS", "vm:vmx:dwarf:fp");
    let wanted = profilers::list("PROGRAMS", "");
    println!(
        "| JDK | Program | Walker | otlpprof: samples | broken | async-profiler: samples | broken | \
         illegal calls | |"
    );
    println!("|---|---|---|---:|---:|---:|---:|---|---|");
    for home in profilers::list("JDKS", "") {
        for program in
            PROGRAMS.iter().filter(|one| wanted.is_empty() || wanted.iter().any(|name| name == one.name))
        {
            if bench.can_run(Path::new(&home), program) {
                walkers.iter().for_each(|walker| bench.cell(Path::new(&home), program, walker));
            }
        }
    }
    let _ = std::fs::remove_dir_all(&bench.scratch);
}

impl Bench {
    fn can_run(&self, home: &Path, program: &Program) -> bool {
        match program.needs {
            Need::Nothing => true,
            Need::Compiler => {
                home.join("jmods/jdk.compiler.jmod").exists() || home.join("bin/javac").exists()
            }
            Need::VirtualThreads => major_version(home) >= 21,
            Need::H2 => self.h2.is_some(),
        }
    }

    /// Runs both sides until they have enough samples, and prints the row.
    fn cell(&self, home: &Path, program: &Program, walker: &str) {
        let compared = self.profilers.has_peer() && [17, 25].contains(&major_version(home));
        let (mut ours, mut theirs) = (Counts::default(), Counts::default());
        for _ in 0..MOST_RUNS {
            if ours.samples < self.samples {
                self.run(home, program, Profiler::Ours, walker, &mut ours);
            }
            if compared && theirs.samples < self.samples {
                self.run(home, program, Profiler::Theirs, walker, &mut theirs);
            }
            if ours.samples >= self.samples && (!compared || theirs.samples >= self.samples) {
                break;
            }
        }
        let percent = |counts: Counts| 100.0 * counts.broken as f64 / counts.samples.max(1) as f64;
        let jdk = home.file_name().unwrap_or_default().to_string_lossy();
        let their_cells =
            if compared { format!("{} | {:.4} %", theirs.samples, percent(theirs)) } else { "| ".to_owned() };
        let illegal = match (program.grammar, compared) {
            (None, _) => String::new(),
            (Some(_), true) => format!("{} / {}", ours.illegal, theirs.illegal),
            (Some(_), false) => ours.illegal.to_string(),
        };
        println!(
            "| {jdk} | {} | {walker} | {} | {:.4} % | {their_cells} | {illegal} | {} |",
            program.name,
            ours.samples,
            percent(ours),
            if compared { verdict(ours, theirs) } else { "" },
        );
    }

    fn run(&self, home: &Path, program: &Program, profiler: Profiler, walker: &str, counts: &mut Counts) {
        let file = self.scratch.join("profile.otlp");
        let _ = std::fs::remove_file(&file);
        let mut classes = self.profilers.classes.clone();
        if let Some(h2) = self.h2.as_ref().filter(|_| program.needs == Need::H2) {
            classes = h2.clone();
        }
        let library = &self.libraries[usize::from(program.library == Library::WithFramePointers)];
        let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/java/api");
        let scratch = self.scratch.join("classes");
        let _ = std::fs::create_dir_all(&scratch);
        let arguments = program.command.iter().map(|&argument| match argument {
            "SECONDS" => self.seconds.to_string(),
            "SOURCES" => sources.to_owned(),
            "SCRATCH" => scratch.display().to_string(),
            other => other.to_owned(),
        });
        let mut whole = vec![self.profilers.option(profiler, INTERVAL, walker, &file)];
        whole.extend(program.flags.iter().map(|&flag| flag.to_owned()));
        whole.extend([format!("-Dddproftest={library}"), "-cp".to_owned(), classes]);
        let output = profilers::java(home, &[], whole.into_iter().chain(arguments).map(OsString::from));
        let mut checked = vec!["--known-roots", "--walker", walker];
        checked.extend(program.grammar.iter().flat_map(|grammar| ["--grammar", *grammar]));
        let report = self.profilers.check_stacks(&file, &checked);
        let count = |name: &str| report[name].as_u64().unwrap_or(0);
        counts.samples += count("samples");
        counts.broken += count("broken");
        counts.illegal += count("illegalCalls");
        if std::env::var_os("VERBOSE").is_some() {
            eprintln!("{}\n{output}\n{report:#}", program.name);
        }
    }
}

/// Returns "ahead" or a similar verdict, by whether the 95 % intervals of the broken shares (Wilson's) are
/// disjoint, or neither side has broken stacks.
fn verdict(ours: Counts, theirs: Counts) -> &'static str {
    let (low, high) = interval(ours);
    let (their_low, their_high) = interval(theirs);
    match () {
        () if high < their_low => "ahead",
        () if ours.broken == 0 && theirs.broken == 0 => "ahead (both whole)",
        () if their_high < low => "BEHIND",
        () => "not apart",
    }
}

fn interval(counts: Counts) -> (f64, f64) {
    const Z: f64 = 1.96;
    let n = counts.samples.max(1) as f64;
    let share = counts.broken as f64 / n;
    let middle = share + Z * Z / (2.0 * n);
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    ((middle - half) / scale, (middle + half) / scale)
}

fn major_version(home: &Path) -> u32 {
    let output = Command::new(home.join("bin/java")).arg("-version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).unwrap_or_default();
    let version = text.split('"').nth(1).unwrap_or_default();
    version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0)
}
