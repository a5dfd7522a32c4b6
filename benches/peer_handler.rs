//! Measures the duration of the signal handler, by the depth of the stack, beside async-profiler's. Both run
//! under a library that reads the clock before and after the handler (`native/handlertimer`).
//! scripts/bench-peers.sh sets the variables that this benchmark needs.

mod measure;

use std::ffi::OsStr;
use std::path::Path;

use measure::Spread;
use measure::profilers::{self, Profiler, Profilers, named_number};

/// Samples are few enough that each finds the VM's caches as the program leaves them.
const INTERVAL: &str = "1ms";

/// The kinds of code that `programs.FixedWork` runs: name, the VM's flags, and the number of times that the
/// program reaches the bottom of its stack, for some seconds.
const KINDS: [(&str, &[&str], &str); 2] = [("compiled", &[], "50000"), ("interpreted", &["-Xint"], "3000")];
const DEPTHS: [&str; 3] = ["20", "100", "500"];

fn main() {
    let (Some(profilers), Ok(timer)) = (Profilers::from_environment(), std::env::var("HANDLER_TIMER")) else {
        println!("peer_handler: NOT MEASURED, its variables are not set (scripts/bench-peers.sh does)");
        return;
    };
    let turns = profilers::number("TURNS", 11) as usize;
    let walkers = profilers::list("WALKERS", "vm");
    for home in profilers::list("JDKS", "") {
        for walker in &walkers {
            println!(
                "handler, {}, {walker} ({turns} alternating turns; median [quartiles])",
                profilers::jdk_name(&home)
            );
            for (kind, flags, rounds) in KINDS {
                for depth in DEPTHS {
                    compare(
                        &profilers,
                        &timer,
                        Path::new(&home),
                        walker,
                        turns,
                        (kind, flags, rounds, depth),
                    );
                }
            }
        }
    }
}

fn compare(
    profilers: &Profilers,
    timer: &str,
    home: &Path,
    walker: &str,
    turns: usize,
    (kind, flags, rounds, depth): (&str, &[&str], &str, &str),
) {
    let sides = if profilers.has_peer() { &Profiler::BOTH[..] } else { &[Profiler::Ours] };
    let mut times = vec![vec![]; sides.len()];
    for turn in 0..turns {
        for place in 0..sides.len() {
            let index = (turn + place) % sides.len();
            let scratch = std::env::temp_dir();
            let file = scratch.join(format!("otlpprof-handler-{}.otlp", std::process::id()));
            let counts = file.with_extension("times");
            let option = profilers.option(sides[index], INTERVAL, walker, &file);
            let mut arguments =
                vec![&*option, "-XX:+UseSerialGC", "-Xmx256m", "-Xss4m", "-cp", &profilers.classes];
            arguments.extend(flags);
            arguments.extend(["programs.FixedWork", depth, rounds]);
            let environment = [("LD_PRELOAD", OsStr::new(timer)), ("HANDLER_TIMES", counts.as_os_str())];
            profilers::java(home, &environment, arguments);
            let text = std::fs::read_to_string(&counts).unwrap_or_default();
            times[index].push(named_number(&text, "handler_ns") / named_number(&text, "handler_calls"));
            for file in [file, counts] {
                let _ = std::fs::remove_file(file);
            }
        }
    }
    let figures: Vec<Spread> = times.into_iter().map(Spread::of).collect();
    for (side, figure) in sides.iter().zip(&figures) {
        let ratio = figures.get(1).map(|theirs| format!("  {:>5.2} x", figure.median / theirs.median));
        println!(
            "  {kind:<11} {depth:>3} frames  {:<15} {:>7.0} ns [{:.0} {:.0}]{}",
            side.name(),
            figure.median,
            figure.lower_quartile,
            figure.upper_quartile,
            ratio.unwrap_or_default(),
        );
    }
}
