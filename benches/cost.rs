//! What sampling costs, beside async-profiler: CPU time of each delivered sample, the kernel's part included, by the
//! depth of the stack, and how much slower a program gets. scripts/bench-peers.sh sets what this needs.
//!
//! `programs.FixedWork` does the same work in each run and tells the CPU time and wall time of that part alone, without
//! the VM's start. The configurations take turns, each turn begins with another one, and a figure compares runs of one
//! turn. One of them is no agent once more: what it seems to cost is the noise.

mod measure;

use std::process::{Command, Stdio};

use measure::Spread;
use serde_json::Value;

const DEPTHS: [u32; 3] = [20, 100, 500];
/// At 100 µs samples are many enough to tell what one costs.
const FINEST: &str = "100us";
/// The depth at which slow-downs are compared, and the intervals.
const SLOW_DOWN_DEPTH: u32 = 100;
const INTERVALS: [&str; 3] = ["10ms", "1ms", FINEST];
/// Times the bottom of the stack is reached: some seconds.
const ROUNDS: &str = "60000";

#[derive(Clone, Copy, PartialEq)]
enum Profiler {
    /// None; the second time to see the noise.
    None(u8),
    Ours,
    Theirs,
}

impl Profiler {
    const fn name(self) -> &'static str {
        match self {
            Self::None(0) => "no agent",
            Self::None(_) => "no agent again",
            Self::Ours => "otlpprof",
            Self::Theirs => "async-profiler",
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
struct Configuration {
    depth: u32,
    interval: &'static str,
    profiler: Profiler,
}

/// What one run gave.
#[derive(Clone, Copy)]
struct Run {
    cpu_ns: f64,
    wall_ns: f64,
    /// In the part that was timed.
    samples: f64,
}

struct Bench {
    agent: String,
    command: String,
    classes: String,
    peer: Option<String>,
    turns: usize,
    file: String,
}

fn main() {
    let variable = |name: &str| std::env::var(name).ok();
    let (Some(agent), Some(command), Some(classes)) =
        (variable("OTLPPROF"), variable("OTLPPROF_COMMAND"), variable("CLASSES"))
    else {
        println!("cost: NOT MEASURED, its variables are not set (scripts/bench-peers.sh does)");
        return;
    };
    let file = std::env::temp_dir().join(format!("otlpprof-cost-{}.otlp", std::process::id()));
    let bench = Bench {
        agent,
        command,
        classes,
        peer: variable("ASYNC_PROFILER"),
        turns: variable("TURNS").and_then(|turns| turns.parse().ok()).unwrap_or(11),
        file: file.display().to_string(),
    };
    for home in variable("JDKS").unwrap_or_default().split(':').filter(|home| !home.is_empty()) {
        bench.compare(home);
    }
    let _ = std::fs::remove_file(file);
}

impl Bench {
    fn configurations(&self) -> Vec<Configuration> {
        let mut configurations = vec![];
        for depth in DEPTHS {
            let none = |again| Configuration { depth, interval: "", profiler: Profiler::None(again) };
            configurations.extend([none(0), none(1)]);
            for interval in INTERVALS {
                if interval == FINEST || depth == SLOW_DOWN_DEPTH {
                    configurations.push(Configuration { depth, interval, profiler: Profiler::Ours });
                    if self.peer.is_some() {
                        configurations.push(Configuration { depth, interval, profiler: Profiler::Theirs });
                    }
                }
            }
        }
        configurations
    }

    fn compare(&self, home: &str) {
        let configurations = self.configurations();
        let mut runs: Vec<Vec<Run>> = vec![vec![]; configurations.len()];
        for turn in 0..self.turns {
            for place in 0..configurations.len() {
                let index = (turn + place) % configurations.len();
                runs[index].push(self.run(home, configurations[index]));
            }
        }
        let of = |depth, interval, profiler| {
            let wanted = Configuration { depth, interval, profiler };
            configurations.iter().position(|one| *one == wanted).map(|index| &runs[index])
        };
        // Each run is compared with the one of the same turn.
        let compared = |depth, interval, profiler, figure: &dyn Fn(&Run, &Run) -> f64| {
            let (with, without) = (of(depth, interval, profiler)?, of(depth, "", Profiler::None(0))?);
            Some(Spread::of(with.iter().zip(without).map(|(with, without)| figure(with, without)).collect()))
        };

        println!("cost, {home} ({} alternating turns; median [quartiles])", self.turns);
        println!("  CPU time of one sample, the kernel's part included, at {FINEST}");
        for depth in DEPTHS {
            let added = |with: &Run, without: &Run| (with.cpu_ns - without.cpu_ns) / with.samples / 1000.0;
            let ours = compared(depth, FINEST, Profiler::Ours, &added);
            let theirs = compared(depth, FINEST, Profiler::Theirs, &added);
            for (profiler, spread) in [(Profiler::Ours, ours), (Profiler::Theirs, theirs)] {
                let Some(spread) = spread else { continue };
                let rate = |run: &Run, _: &Run| run.samples / run.wall_ns * 1e9;
                let rate = compared(depth, FINEST, profiler, &rate).map_or(0.0, |rate| rate.median);
                let ratio = theirs.map(|theirs| format!("  {:>5.2} x", spread.median / theirs.median));
                println!(
                    "    {depth:>3} frames  {:<15} {:>7.2} µs [{:.2} {:.2}]{}  {rate:.0} samples/s",
                    profiler.name(),
                    spread.median,
                    spread.lower_quartile,
                    spread.upper_quartile,
                    ratio.unwrap_or_default(),
                );
            }
        }
        println!("  slow-down of the program, {SLOW_DOWN_DEPTH} frames: wall time | CPU time of the process");
        let noise = ("", Profiler::None(1));
        let profilers = [Profiler::Ours, Profiler::Theirs];
        let rest = INTERVALS.iter().flat_map(|&interval| profilers.map(|profiler| (interval, profiler)));
        for (interval, profiler) in std::iter::once(noise).chain(rest) {
            let percent = |more: f64, less: f64| 100.0 * (more / less - 1.0);
            let wall = |with: &Run, without: &Run| percent(with.wall_ns, without.wall_ns);
            let cpu = |with: &Run, without: &Run| percent(with.cpu_ns, without.cpu_ns);
            let (Some(wall), Some(cpu)) = (
                compared(SLOW_DOWN_DEPTH, interval, profiler, &wall),
                compared(SLOW_DOWN_DEPTH, interval, profiler, &cpu),
            ) else {
                continue;
            };
            println!(
                "    {interval:>5} {:<15} {:>+6.2} % [{:+.2} {:+.2}] | {:>+6.2} % [{:+.2} {:+.2}]",
                profiler.name(),
                wall.median,
                wall.lower_quartile,
                wall.upper_quartile,
                cpu.median,
                cpu.lower_quartile,
                cpu.upper_quartile,
            );
        }
    }

    fn run(&self, home: &str, configuration: Configuration) -> Run {
        let _ = std::fs::remove_file(&self.file);
        let (interval, file) = (configuration.interval, &self.file);
        let agent = match (configuration.profiler, &self.peer) {
            (Profiler::Ours, _) => {
                Some(format!("{}=cpu={interval},interval=10s,loglevel=error,file={file}", self.agent))
            }
            (Profiler::Theirs, Some(peer)) => Some(format!(
                "{peer}=start,event=cpu,interval={interval},cstack=vm,jstackdepth=2048,otlp,file={file}"
            )),
            _ => None,
        };
        let mut command = Command::new(format!("{home}/bin/java"));
        command.args(agent.iter().map(|agent| format!("-agentpath:{agent}")));
        // One collector and one size of the heap for all: what they do is not what is measured.
        command.args(["-XX:+UseSerialGC", "-Xmx256m", "-Xss4m", "-cp", &self.classes, "programs.FixedWork"]);
        command.args([&configuration.depth.to_string(), ROUNDS]).stdin(Stdio::null());
        let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        let number = |name: &str| -> f64 {
            let mut values = printed.split_whitespace().filter_map(|word| word.strip_prefix(name));
            values
                .next()
                .and_then(|text| text.parse().ok())
                .unwrap_or_else(|| panic!("{command:?}: {printed}"))
        };
        let (cpu_ns, wall_ns) = (number("cpu_ns="), number("wall_ns="));
        let samples = if agent.is_some() { self.samples() } else { 0.0 };
        // The VM's start and the warm-up are sampled as well.
        let timed_share = cpu_ns / number("process_cpu_ns=");
        Run { cpu_ns, wall_ns, samples: samples * timed_share }
    }

    fn samples(&self) -> f64 {
        let mut check = Command::new(&self.command);
        check.args(["check-stacks", "--format", "json"]).arg(&self.file);
        let output = check.output().unwrap_or_else(|error| panic!("{check:?}: {error}"));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{check:?}: {error}: {}", String::from_utf8_lossy(&output.stderr))
        });
        report["samples"].as_f64().unwrap_or(0.0)
    }
}
