//! Measures the time of each exception in a storm of exceptions: without an agent, with each exception
//! sampled, with few samples because of a limit, and with throws sampled instead of creations. By the number
//! of frames through which an exception is thrown.
//!
//! The configurations take turns, each turn begins with another one, and each run is a separate process.
//! OTLPPROF is the agent's library, CLASSES the compiled test programs, JAVAS the `java` programs (separated
//! by colons), TURNS the number of turns.

mod measure;

use std::process::Command;

use measure::Spread;

/// Name and further options of the agent besides `exceptions`; `None`: no agent.
const CONFIGURATIONS: [(&str, Option<&str>); 5] = [
    ("no agent", None),
    ("100 samples a second", Some("limit=exceptions:100")),
    ("10,000 samples a second", Some("limit=exceptions:10000")),
    ("each is sampled", Some("limit=off")),
    ("throws, 100 a second", Some("limit=exceptions:100,exceptions.thrown")),
];
const DEPTHS: [&str; 2] = ["1", "50"];
const SECONDS: f64 = 2.0;

fn main() {
    let (Ok(agent), Ok(classes)) = (std::env::var("OTLPPROF"), std::env::var("CLASSES")) else {
        println!("storm: NOT MEASURED, OTLPPROF and CLASSES are not set (scripts/bench.sh does)");
        return;
    };
    let turns = std::env::var("TURNS").ok().and_then(|turns| turns.parse().ok()).unwrap_or(7);
    for java in std::env::var("JAVAS").unwrap_or_else(|_| "java".to_owned()).split(':') {
        for depth in DEPTHS {
            compare(java, &classes, &agent, depth, turns);
        }
    }
}

fn compare(java: &str, classes: &str, agent: &str, depth: &str, turns: usize) {
    let mut times_ns = vec![Vec::new(); CONFIGURATIONS.len()];
    for turn in 0..turns {
        for place in 0..CONFIGURATIONS.len() {
            let index = (turn + place) % CONFIGURATIONS.len();
            let options = CONFIGURATIONS[index].1.map(|limit| {
                format!(
                    "-agentpath:{agent}=cpu=off,exceptions,budget=off,loglevel=off,file=/dev/null,{limit}"
                )
            });
            times_ns[index].push(SECONDS * 1e9 / thrown(java, classes, depth, options.as_deref()));
        }
    }
    println!(
        "storm of exceptions through {depth} frames, {java} ({turns} alternating turns; median [quartiles])"
    );
    let spreads: Vec<_> = times_ns.into_iter().map(Spread::of).collect();
    for ((name, _), each) in CONFIGURATIONS.iter().zip(&spreads) {
        println!(
            "  {name:<24} {:>8.0} ns each [{:.0} {:.0}] {:>6.2}×",
            each.median,
            each.lower_quartile,
            each.upper_quartile,
            each.median / spreads[0].median
        );
    }
}

/// Returns the number of exceptions that one run of the program throws.
fn thrown(java: &str, classes: &str, depth: &str, agent: Option<&str>) -> f64 {
    let seconds = SECONDS.to_string();
    let output = Command::new(java)
        .args(agent)
        .args(["-cp", classes, "programs.EventStorm", "exceptions", &seconds, depth])
        .output()
        .unwrap_or_else(|error| panic!("{java}: {error}"));
    let printed = String::from_utf8_lossy(&output.stdout);
    printed
        .trim()
        .parse()
        .unwrap_or_else(|_| panic!("{java}: {printed}{}", String::from_utf8_lossy(&output.stderr)))
}
