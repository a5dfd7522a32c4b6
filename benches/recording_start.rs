//! Measures the time from the start of the session to the start of the recording of `jfr`, on each JDK,
//! beside the time that `new Recording().start()` takes by itself in the main thread of such a JVM: without
//! events, and with the events that `jfr` enables, whose classes the JVM instruments.
//!
//! The three take turns, and each run is a separate process. OTLPPROF is the agent's library, CLASSES the
//! compiled test programs, JAVAS the `java` programs (separated by colons), TURNS the number of turns.

mod measure;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use measure::Spread;

/// The largest permitted ratio of the agent's time to the other time.
const GOAL: f64 = 1.2;

fn main() {
    let (Ok(agent), Ok(classes)) = (std::env::var("OTLPPROF"), std::env::var("CLASSES")) else {
        println!("recording_start: NOT MEASURED, OTLPPROF and CLASSES are not set (scripts/bench.sh does)");
        return;
    };
    let turns = std::env::var("TURNS").ok().and_then(|turns| turns.parse().ok()).unwrap_or(21);
    let profile = std::env::temp_dir().join(format!("otlpprof-recording-{}.otlp", std::process::id()));
    let options = format!("-agentpath:{agent}=jfr,loglevel=debug,file={}", profile.display());
    for java in std::env::var("JAVAS").unwrap_or_else(|_| "java".to_owned()).split(':') {
        let (mut nothing, mut events, mut by_agent) = (Vec::new(), Vec::new(), Vec::new());
        for turn in 0..=turns {
            let [empty, same] = ["nothing", "events"].map(|recorded| recording_ms(java, &classes, recorded));
            let agent = by_agent_ms(java, &classes, &options);
            // The first turn fills the page cache.
            if turn > 0 {
                nothing.push(empty);
                events.push(same);
                by_agent.push(agent);
            }
        }
        let [nothing, events, by_agent] = [nothing, events, by_agent].map(Spread::of);
        println!("recording_start, {java} ({turns} alternating turns; median [quartiles])");
        for (name, spread) in [
            ("new Recording().start()", &nothing),
            ("the same, with the events", &events),
            ("otlpprof, jfr", &by_agent),
        ] {
            println!(
                "  {name:<26} {:>7.1} ms [{:.1} {:.1}]",
                spread.median, spread.lower_quartile, spread.upper_quartile
            );
        }
        println!(
            "  ratio {:.2} (goal: at most {GOAL}), {:.2} to the recording with the events",
            by_agent.median / nothing.median,
            by_agent.median / events.median
        );
    }
    let _ = std::fs::remove_file(profile);
}

fn program(java: &str, classes: &str) -> Command {
    let mut command = Command::new(java);
    command.args(["-cp", classes]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn spawn(command: &mut Command) -> Child {
    command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Returns the milliseconds that the program measures itself, without an agent.
fn recording_ms(java: &str, classes: &str, recorded: &str) -> f64 {
    let child = spawn(program(java, classes).args(["programs.RecordingStart", recorded]));
    let output = child.wait_with_output().expect("the program's output");
    let text = String::from_utf8_lossy(&output.stdout);
    let ns: f64 = text.trim().parse().unwrap_or_else(|error| panic!("{text:?}: {error}"));
    ns / 1e6
}

/// Returns the milliseconds that the agent logs. The program ends when the agent has logged them.
fn by_agent_ms(java: &str, classes: &str, options: &str) -> f64 {
    let mut command = program(java, classes);
    // The options go before the class.
    let mut child = spawn(command.arg(options).arg("programs.RecordingStart"));
    let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut began = None;
    for line in stderr.lines() {
        let line = line.expect("a line");
        if let Some(ms) =
            line.strip_suffix(" ms after the session began").filter(|line| line.contains("jfr: "))
        {
            let ms = ms.rsplit(' ').next().and_then(|ms| ms.parse().ok());
            began = Some(ms.unwrap_or_else(|| panic!("{line}")));
            // The program ends when its standard input is closed.
            drop(child.stdin.take());
        }
    }
    assert!(child.wait().expect("the program's end").success());
    began.expect("the agent says when the recording began")
}
