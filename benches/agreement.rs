//! Compares the results of two profilers for a program: each method's share of the CPU time, by itself and
//! with all its callees, beside async-profiler's result and beside the share that the program was built to
//! spend. scripts/bench-peers.sh sets the variables that this benchmark needs.
//!
//! A sample counts for the youngest Java method on its stack, even if that method has called native code, and
//! in the totals once for each method on the stack. Samples without a Java frame belong to threads of the VM
//! and are left out. The spread of the runs of one profiler shows the effect of chance: a difference counts
//! if it is outside the 99 % interval of the difference of the means (Welch's).

mod measure;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use measure::profilers::{self, Profiler, Profilers};
use otlpprof_otlp::frames::frames;
use otlpprof_otlp::lookup::Lookup;
use otlpprof_otlp::read;
use otlpprof_otlp::roots::is_java;

const INTERVAL: &str = "1ms";
/// Methods with a smaller share are not compared.
const LEAST_SHARE: f64 = 0.01;

struct Program {
    name: &'static str,
    command: &'static [&'static str],
    /// The methods whose shares the program was built to have: name, share by itself, share in total.
    known: &'static [(&'static str, f64, f64)],
}

const PROGRAMS: &[Program] = &[
    Program {
        name: "known shares",
        command: &["programs.KnownShares"],
        known: &[
            ("programs.KnownShares.forty", 0.40, 0.40),
            ("programs.KnownShares.twentyFive", 0.25, 0.25),
            ("programs.KnownShares.twenty", 0.20, 0.20),
            ("programs.KnownShares.ten", 0.10, 0.10),
            ("programs.KnownShares.five", 0.05, 0.05),
            ("programs.KnownShares.fortyFive", 0.0, 0.45),
            ("programs.KnownShares.fiftyFive", 0.0, 0.55),
        ],
    },
    Program { name: "upcalls", command: &["programs.Situations", "upcalls"], known: &[] },
    Program { name: "polymorphic calls", command: &["programs.Situations", "calls"], known: &[] },
    Program { name: "allocation", command: &["programs.Situations", "allocation"], known: &[] },
    Program { name: "strings and lambdas", command: &["programs.Situations", "strings"], known: &[] },
    Program { name: "exceptions", command: &["programs.Situations", "exceptions"], known: &[] },
];

/// By method: the share by itself, and the share in total.
type Shares = BTreeMap<String, [f64; 2]>;

fn main() {
    let (Some(profilers), Ok(library)) = (Profilers::from_environment(), std::env::var("DDPROFTEST")) else {
        println!("agreement: NOT MEASURED, its variables are not set (scripts/bench-peers.sh does)");
        return;
    };
    let turns = profilers::number("TURNS", 8).max(2) as usize;
    let seconds = profilers::number("SECONDS", 8).to_string();
    let wanted = profilers::list("PROGRAMS", "");
    for home in profilers::list("JDKS", "") {
        for program in PROGRAMS {
            if wanted.is_empty() || wanted.iter().any(|name| name == program.name) {
                let mut runs = [vec![], vec![]];
                for turn in 0..turns * 2 {
                    let side = (turn + turn / 2) % 2;
                    if side == 0 || profilers.has_peer() {
                        let shares = run(
                            &profilers,
                            Profiler::BOTH[side],
                            Path::new(&home),
                            program,
                            &library,
                            &seconds,
                        );
                        runs[side].push(shares);
                    }
                }
                print(&profilers::jdk_name(&home), program, &runs);
            }
        }
    }
}

fn run(
    profilers: &Profilers,
    profiler: Profiler,
    home: &Path,
    program: &Program,
    library: &str,
    seconds: &str,
) -> Shares {
    let file = std::env::temp_dir().join(format!("otlpprof-agreement-{}.otlp", std::process::id()));
    let option = profilers.option(profiler, INTERVAL, "vm", &file);
    let library = format!("-Dddproftest={library}");
    let mut arguments = vec![&*option, &library, "-cp", &profilers.classes];
    arguments.extend(program.command);
    arguments.push(seconds);
    profilers::java(home, &[], arguments);
    let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let _ = std::fs::remove_file(&file);
    shares(&bytes)
}

fn shares(bytes: &[u8]) -> Shares {
    let mut counts: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    let mut all = 0;
    for message in read::read(bytes) {
        let data = message.expect("a profile").data;
        let tables = Lookup::new(&data);
        let scopes = data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
        for sample in scopes.flat_map(|scope| &scope.profiles).flat_map(|profile| &profile.samples) {
            let count = sample.values.iter().map(|&value| u64::try_from(value).unwrap_or(0)).sum::<u64>();
            let frames = frames(tables, sample.stack_index);
            let methods =
                frames.iter().filter(|frame| is_java(frame)).map(|frame| frame.text.replace('/', "."));
            let mut met = HashSet::new();
            for (place, method) in methods.enumerate() {
                if place == 0 {
                    all += count;
                }
                let sums = counts.entry(method.clone()).or_default();
                sums[0] += if place == 0 { count } else { 0 };
                sums[1] += if met.insert(method) { count } else { 0 };
            }
        }
    }
    let share = |count: u64| count as f64 / all as f64;
    counts.into_iter().map(|(method, sums)| (method, sums.map(share))).collect()
}

/// Returns the mean and its standard error.
fn mean(runs: &[Shares], method: &str, which: usize) -> (f64, f64) {
    let n = runs.len() as f64;
    let values: Vec<f64> =
        runs.iter().map(|run| run.get(method).map_or(0.0, |shares| shares[which])).collect();
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// Returns the two-sided 99 % quantile of Student's distribution.
fn student(degrees: f64) -> f64 {
    const QUANTILES: [f64; 15] =
        [63.66, 9.92, 5.84, 4.60, 4.03, 3.71, 3.50, 3.36, 3.25, 3.17, 3.11, 3.05, 3.01, 2.98, 2.95];
    QUANTILES.get((degrees as usize).saturating_sub(1)).copied().unwrap_or(2.9)
}

fn print(jdk: &str, program: &Program, [ours, theirs]: &[Vec<Shares>; 2]) {
    println!("agreement, {jdk}, {}, {} runs of each (percent of Java's CPU time)", program.name, ours.len());
    let mut methods: Vec<&String> = ours.iter().chain(theirs).flatten().map(|(method, _)| method).collect();
    methods.sort_unstable();
    methods.dedup();
    let (mut compared, mut apart) = (0, 0);
    for method in methods {
        for (which, kind) in ["self", "total"].into_iter().enumerate() {
            let (our_mean, our_error) = mean(ours, method, which);
            let (their_mean, their_error) =
                if theirs.is_empty() { (0.0, 0.0) } else { mean(theirs, method, which) };
            if our_mean.max(their_mean) < LEAST_SHARE {
                continue;
            }
            let known = program.known.iter().find(|(name, ..)| name == method);
            let known = known.map(|&(_, alone, total)| if which == 0 { alone } else { total });
            let known = known.map(|share| format!("  known {:.2}", 100.0 * share)).unwrap_or_default();
            let mut verdict = "";
            if !theirs.is_empty() {
                // The degrees of freedom by Welch and Satterthwaite.
                let (our_part, their_part) = (our_error.powi(2), their_error.powi(2));
                let n = (ours.len() - 1) as f64;
                let degrees = (our_part + their_part).powi(2)
                    / (our_part.powi(2) / n + their_part.powi(2) / n).max(f64::MIN_POSITIVE);
                compared += 1;
                if (our_mean - their_mean).abs() > student(degrees) * (our_part + their_part).sqrt() {
                    apart += 1;
                    verdict = "  APART";
                }
            }
            let percent = |share: f64| 100.0 * share;
            println!(
                "  {kind:<5} {:>6.2} ± {:<5.2} | {:>6.2} ± {:<5.2}{known}  {method}{verdict}",
                percent(our_mean),
                percent(our_error),
                percent(their_mean),
                percent(their_error),
            );
        }
    }
    println!("  {apart} of {compared} apart (1 % of them by chance)");
}
