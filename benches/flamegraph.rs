//! Flame graph pages of large profiles: the time and the peak memory that it takes to make a page, and the
//! page's size, beside async-profiler's jfrconv.
//!
//! `deep` has 1,000,000 distinct stacks of one type, without labels or times. otlpprof reads them in OTLP,
//! jfrconv as collapsed stacks. `labels` has 100,000 stacks in 1,000,000 rows of 40 endpoints, 64 threads and
//! 360 times. jfrconv's page has neither labels nor times, so otlpprof makes this page alone.
//!
//! PAGES is a folder, in which the pages stay as `deep.html` and `labels.html`; JAVA the JVM, JFR_CONVERTER
//! async-profiler's jar, TURNS the number of turns.

#[path = "flamegraph/inputs.rs"]
mod inputs;
mod measure;
#[path = "flamegraph/random_stacks.rs"]
mod random_stacks;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use measure::Spread;
use random_stacks::{Stacks, functions};

const TURNS: usize = 5;
const MEGABYTE: f64 = 1e6;
/// The argument that makes this program write inputs: `MAKE deep FOLDER` or `MAKE labels FOLDER`.
const MAKE: &str = "--make";

/// A program that makes a page.
struct Maker {
    name: &'static str,
    command: Command,
    page: PathBuf,
}

/// The seconds, the peak memory in MB and the page's size in MB of all turns.
#[derive(Default)]
struct Figures {
    seconds: Vec<f64>,
    memory: Vec<f64>,
    page: Vec<f64>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, name, folder] = &arguments[..]
        && flag == MAKE
    {
        return make(name, Path::new(folder));
    }
    let Some(pages) = std::env::var_os("PAGES").map(PathBuf::from) else {
        println!("flamegraph: NOT MEASURED, PAGES is not set (scripts/bench.sh does)");
        return;
    };
    let turns = std::env::var("TURNS").ok().and_then(|turns| turns.parse().ok()).unwrap_or(TURNS);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let input = |name: &str| folder.path().join(name);

    made("deep", folder.path());
    let mut makers = vec![ours(&input("deep.otlp"), pages.join("deep.html"))];
    makers.extend(jfrconv(&input("deep.collapsed"), input("jfrconv.html")));
    compare("1,000,000 stacks", "goals: 5 s, 500 MB, page 16 MB", makers, turns);

    made("labels", folder.path());
    let makers = vec![ours(&input("labels.otlp"), pages.join("labels.html"))];
    compare("100,000 stacks in 1,000,000 rows", "goal: page 10 MB", makers, turns);
}

/// Writes the inputs of a name to a folder.
fn make(name: &str, folder: &Path) {
    let written = if name == "deep" {
        let stacks = Stacks::new(1_000_000, 40_000);
        let (otlp, collapsed) = (folder.join("deep.otlp"), folder.join("deep.collapsed"));
        inputs::write_deep(&stacks, &functions(40_000), &otlp, &collapsed)
    } else {
        let stacks = Stacks::new(100_000, 20_000);
        inputs::write_labels(&stacks, &functions(20_000), &folder.join("labels.otlp"))
    };
    written.expect("the input");
}

/// Makes inputs in a process of its own. The peak memory of a child is at least the memory that its parent
/// has when the child starts, so this process stays small.
fn made(name: &str, folder: &Path) {
    let this = std::env::current_exe().expect("this program");
    let status = Command::new(this).args([MAKE, name]).arg(folder).status().expect("this program");
    assert!(status.success(), "{status}");
}

fn ours(input: &Path, page: PathBuf) -> Maker {
    let mut command = Command::new(env!("CARGO_BIN_EXE_otlpprof"));
    command.arg("flamegraph").arg(input).arg("-o").arg(&page);
    Maker { name: "otlpprof", command, page }
}

fn jfrconv(input: &Path, page: PathBuf) -> Option<Maker> {
    let (Ok(java), Ok(jar)) = (std::env::var("JAVA"), std::env::var("JFR_CONVERTER")) else {
        println!("  jfrconv: NOT MEASURED, JAVA and JFR_CONVERTER are not set (scripts/bench.sh does)");
        return None;
    };
    let mut command = Command::new(java);
    command.args(["-Xmx6g", "-cp", &jar, "one.convert.Main"]).arg(input).arg(&page);
    Some(Maker { name: "jfrconv", command, page })
}

/// Lets the programs take turns, each of which begins with another program. Prints medians and quartiles, and
/// the ratio of the first program to each other one.
fn compare(title: &str, goals: &str, mut makers: Vec<Maker>, turns: usize) {
    let mut all: Vec<Figures> = makers.iter().map(|_| Figures::default()).collect();
    for turn in 0..turns {
        for place in 0..makers.len() {
            let index = (turn + place) % makers.len();
            let Maker { command, page, .. } = &mut makers[index];
            let started = Instant::now();
            #[expect(clippy::zombie_processes, reason = "it is waited for below")]
            let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program");
            let (time, resident_kib) = measure::child::wait(&child, started);
            let figures = &mut all[index];
            figures.seconds.push(time.as_secs_f64());
            figures.memory.push(resident_kib as f64 * 1024.0 / MEGABYTE);
            let bytes = std::fs::metadata(page).expect("the page").len();
            figures.page.push(bytes as f64 / MEGABYTE);
        }
    }
    println!("flamegraph, {title} ({turns} alternating turns; median [quartiles]; {goals})");
    let spreads: Vec<_> =
        all.into_iter().map(|of| [of.seconds, of.memory, of.page].map(Spread::of)).collect();
    for (maker, [seconds, memory, page]) in makers.iter().zip(&spreads) {
        println!(
            "  {:<10} {:>6.2} s [{:.2} {:.2}]  {:>7.1} MB [{:.1} {:.1}]  page {:>5.2} MB",
            maker.name,
            seconds.median,
            seconds.lower_quartile,
            seconds.upper_quartile,
            memory.median,
            memory.lower_quartile,
            memory.upper_quartile,
            page.median,
        );
    }
    for (maker, theirs) in makers.iter().zip(&spreads).skip(1) {
        let [time, memory, page] = std::array::from_fn(|at| spreads[0][at].median / theirs[at].median);
        println!("  ratio to {}: time {time:.2}, memory {memory:.2}, page {page:.2}", maker.name);
    }
}
