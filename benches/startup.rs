//! Measures the time and memory that profiling adds to a program that prints one line, and to one that loads
//! 50,000 classes: wall time and peak resident memory, on each JDK, beside async-profiler if ASYNC_PROFILER
//! names its library (scripts/bench.sh downloads it).
//!
//! The configurations take turns, each turn begins with another one, and each run is a separate process.
//! OTLPPROF is the agent's library, CLASSES the compiled test programs, JAVAS the `java` programs (separated
//! by colons), TURNS the number of turns.

mod measure;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use measure::Spread;

/// A way to run the program.
struct Configuration {
    name: &'static str,
    agent: Option<String>,
}

/// The largest number of turns of a program that runs for seconds.
const MOST_LONG_TURNS: usize = 7;

fn main() {
    let (Ok(agent), Ok(classes)) = (std::env::var("OTLPPROF"), std::env::var("CLASSES")) else {
        println!("startup: NOT MEASURED, OTLPPROF and CLASSES are not set (scripts/bench.sh does)");
        return;
    };
    let turns = std::env::var("TURNS").ok().and_then(|turns| turns.parse().ok()).unwrap_or(21);
    let profile = std::env::temp_dir().join(format!("otlpprof-startup-{}.otlp", std::process::id()));
    let file = profile.display();
    let ours = |options: &str| Some(format!("-agentpath:{agent}={options}"));
    let mut configurations = vec![
        Configuration { name: "no agent", agent: None },
        Configuration { name: "otlpprof, idle", agent: ours(&format!("cpu=off,loglevel=off,file={file}")) },
        Configuration {
            name: "otlpprof, timer",
            agent: ours(&format!("cpu.clock=timer,loglevel=off,file={file}")),
        },
        Configuration {
            name: "otlpprof, perf",
            agent: ours(&format!("cpu.clock=perf,loglevel=off,file={file}")),
        },
    ];
    match std::env::var("ASYNC_PROFILER") {
        Ok(peer) => {
            let theirs = |options: String| Some(format!("-agentpath:{peer}{options}"));
            let otlp = |event: &str| format!("=start,event={event},interval=10ms,otlp,file={file}");
            configurations.extend([
                Configuration { name: "async-profiler, idle", agent: theirs(String::new()) },
                Configuration { name: "async-profiler, ctimer", agent: theirs(otlp("ctimer")) },
                Configuration { name: "async-profiler, perf", agent: theirs(otlp("cpu")) },
            ]);
        }
        Err(_) => println!("startup: async-profiler is NOT MEASURED, ASYNC_PROFILER is not set"),
    }
    for java in std::env::var("JAVAS").unwrap_or_else(|_| "java".to_owned()).split(':') {
        compare(java, &classes, &["programs.Hello"], &configurations, turns);
        let many = ["programs.ManyClasses", "50000"];
        compare(java, &classes, &many, &configurations, turns.min(MOST_LONG_TURNS));
    }
    let _ = std::fs::remove_file(profile);
}

fn compare(java: &str, classes: &str, program: &[&str], configurations: &[Configuration], turns: usize) {
    let mut times = vec![Vec::new(); configurations.len()];
    let mut memory = vec![Vec::new(); configurations.len()];
    for turn in 0..=turns {
        for place in 0..configurations.len() {
            let index = (turn + place) % configurations.len();
            let (time, resident_kib) = run(java, classes, program, configurations[index].agent.as_deref());
            // The first turn fills the page cache.
            if turn > 0 {
                times[index].push(time.as_secs_f64() * 1e3);
                memory[index].push(resident_kib as f64 / 1024.0);
            }
        }
    }
    let title = format!("startup, {}, {java}", program.join(" "));
    println!("{title} ({turns} alternating turns; median [quartiles], added to no agent)");
    let spreads: Vec<_> =
        times.into_iter().zip(memory).map(|(t, m)| (Spread::of(t), Spread::of(m))).collect();
    let (base_time, base_memory) = &spreads[0];
    for (configuration, (time, memory)) in configurations.iter().zip(&spreads) {
        println!(
            "  {:<24} {:>7.1} ms [{:.1} {:.1}] {:>+7.1} ms  {:>6.1} MiB [{:.1} {:.1}] {:>+6.1} MiB",
            configuration.name,
            time.median,
            time.lower_quartile,
            time.upper_quartile,
            time.median - base_time.median,
            memory.median,
            memory.lower_quartile,
            memory.upper_quartile,
            memory.median - base_memory.median,
        );
    }
}

/// Runs the program once; returns its wall time, and its peak resident memory in KiB.
fn run(java: &str, classes: &str, program: &[&str], agent: Option<&str>) -> (Duration, i64) {
    let started = Instant::now();
    #[expect(clippy::zombie_processes, reason = "it is waited for below")]
    let child = Command::new(java)
        .args(agent)
        .args(["-cp", classes])
        .args(program)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{java}: {error}"));
    measure::child::wait(&child, started)
}
