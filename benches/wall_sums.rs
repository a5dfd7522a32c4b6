//! Measures how well wall-clock sums of thousands of threads add up: the time that the samples of an interval
//! stand for, divided by the interval's length times the threads. 1 is right.
//!
//! `programs.IdleCrowd` has threads that wait and two threads that run. OTLPPROF is the agent's library,
//! CLASSES the compiled test programs, JAVAS the `java` programs (separated by colons).

mod measure;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use measure::Spread;
use otlpprof_testkit::profiles::messages;
use otlpprof_testkit::wall_sums::{IntervalSums, interval_sums};

/// The numbers of waiting threads.
const THREADS: [u32; 4] = [2_000, 4_000, 8_000, 20_000];
/// The number of threads that run beside them.
const RUNNING: u32 = 2;
/// The seconds for which all threads wait.
const SECONDS: u32 = 32;
/// The largest permitted difference from 1 of the waiting threads' sum.
const GOAL: f64 = 0.02;

fn main() {
    let (Ok(agent), Ok(classes)) = (std::env::var("OTLPPROF"), std::env::var("CLASSES")) else {
        println!("wall_sums: NOT MEASURED, OTLPPROF and CLASSES are not set (scripts/bench.sh does)");
        return;
    };
    let file = std::env::temp_dir().join(format!("otlpprof-wall-sums-{}.otlp", std::process::id()));
    for java in std::env::var("JAVAS").unwrap_or_else(|_| "java".to_owned()).split(':') {
        println!("wall_sums, {java} (sums divided by the true time; goal: waiting within {GOAL} of 1)");
        println!("  threads budget  intervals  waiting: median [all]   running: each thread");
        for threads in THREADS {
            for budget in ["off", "2"] {
                let options = format!("cpu=off,wall=50ms,interval=5s,budget={budget},loglevel=error");
                let agent = format!("-agentpath:{agent}={options},file={}", file.display());
                let intervals = intervals(java, &agent, &classes, threads, &file);
                let row = match &intervals {
                    Ok(intervals) if intervals.is_empty() => "NOT MEASURED: no whole interval".to_owned(),
                    Ok(intervals) => row(intervals, threads),
                    Err(reason) => format!("NOT MEASURED: {reason}"),
                };
                println!("  {threads:>7} {budget:<7} {row}");
            }
        }
    }
    let _ = std::fs::remove_file(file);
}

/// Runs the program, and returns the sums of the intervals. An error if the program fails, as it does where
/// the system allows fewer threads.
fn intervals(
    java: &str,
    agent: &str,
    classes: &str,
    threads: u32,
    file: &Path,
) -> Result<Vec<IntervalSums>, String> {
    let mut command = Command::new(java);
    command.args([agent, "-Xmx1g", "-cp", classes, "programs.IdleCrowd"]);
    command.args([threads, SECONDS, RUNNING].map(|number| number.to_string()));
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", output.status, errors.lines().next().unwrap_or_default()));
    }
    Ok(interval_sums(&messages(file), &String::from_utf8_lossy(&output.stdout)))
}

/// The figures of a run as text.
fn row(intervals: &[IntervalSums], threads: u32) -> String {
    let idle: Vec<f64> = intervals.iter().map(|interval| interval.idle_ratio(threads)).collect();
    let (least, most) =
        (idle.iter().copied().fold(f64::MAX, f64::min), idle.iter().copied().fold(0.0, f64::max));
    let mut running = BTreeMap::<i64, f64>::new();
    for (&thread, &ns) in intervals.iter().flat_map(|interval| &interval.running_ns) {
        *running.entry(thread).or_default() += ns;
    }
    let length_ns: u64 = intervals.iter().map(|interval| interval.length_ns).sum();
    let running = running.values().map(|ns| format!("{:.3}", ns / length_ns as f64)).collect::<Vec<_>>();
    let (count, median) = (intervals.len(), Spread::of(idle).median);
    format!("{count:>9}  {median:.4} [{least:.4} {most:.4}]   {}", running.join(" "))
}
