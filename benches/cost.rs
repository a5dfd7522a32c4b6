//! Measures the cost of sampling, beside async-profiler's: the CPU time of each delivered sample, including
//! the kernel's part, by the depth of the stack, and the slow-down of a program. scripts/bench-peers.sh sets
//! the variables that this benchmark needs.
//!
//! `programs.FixedWork` does the same work in each run and prints the CPU time and wall time of that part
//! alone, without the VM's start. The configurations take turns, each turn begins with another one, and a
//! figure compares runs of one turn. One configuration is a second run without an agent: its apparent cost is
//! the noise.

mod measure;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use measure::Spread;
use measure::profilers::{self, Profiler, Profilers, named_number};

const DEPTHS: [u32; 3] = [20, 100, 500];
/// At 100 µs there are enough samples to determine the cost of one.
const FINEST: &str = "100us";
/// The depth at which slow-downs are compared. `INTERVALS` are the sampling intervals.
const SLOW_DOWN_DEPTH: u32 = 100;
const INTERVALS: [&str; 3] = ["10ms", "1ms", FINEST];
/// The number of times that the program reaches the bottom of the stack: some seconds.
const ROUNDS: &str = "60000";

/// The agent of a run.
#[derive(Clone, Copy, PartialEq)]
enum Agent {
    /// No agent; number 1 is the second run without one, which shows the noise.
    None(u8),
    Some(Profiler),
}

impl Agent {
    const OURS: Self = Self::Some(Profiler::Ours);
    const THEIRS: Self = Self::Some(Profiler::Theirs);

    const fn name(self) -> &'static str {
        match self {
            Self::None(0) => "no agent",
            Self::None(_) => "no agent again",
            Self::Some(profiler) => profiler.name(),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
struct Configuration {
    depth: u32,
    interval: &'static str,
    agent: Agent,
}

/// The results of one run.
#[derive(Clone, Copy)]
struct Run {
    cpu_ns: f64,
    wall_ns: f64,
    /// The samples in the part that was timed.
    samples: f64,
}

struct Bench {
    profilers: Profilers,
    turns: usize,
    file: PathBuf,
}

fn main() {
    let Some(profilers) = Profilers::from_environment() else {
        println!("cost: NOT MEASURED, its variables are not set (scripts/bench-peers.sh does)");
        return;
    };
    let file = std::env::temp_dir().join(format!("otlpprof-cost-{}.otlp", std::process::id()));
    let bench = Bench { profilers, turns: profilers::number("TURNS", 11) as usize, file };
    for home in profilers::list("JDKS", "") {
        bench.compare(&home);
    }
    let _ = std::fs::remove_file(&bench.file);
}

impl Bench {
    fn configurations(&self) -> Vec<Configuration> {
        let mut configurations = vec![];
        for depth in DEPTHS {
            let none = |again| Configuration { depth, interval: "", agent: Agent::None(again) };
            configurations.extend([none(0), none(1)]);
            for interval in INTERVALS {
                if interval == FINEST || depth == SLOW_DOWN_DEPTH {
                    configurations.push(Configuration { depth, interval, agent: Agent::OURS });
                    if self.profilers.has_peer() {
                        configurations.push(Configuration { depth, interval, agent: Agent::THEIRS });
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
        let of = |depth, interval, agent| {
            let wanted = Configuration { depth, interval, agent };
            configurations.iter().position(|one| *one == wanted).map(|index| &runs[index])
        };
        // Each run is compared with the run of the same turn.
        let compared = |depth, interval, agent, figure: &dyn Fn(&Run, &Run) -> f64| {
            let (with, without) = (of(depth, interval, agent)?, of(depth, "", Agent::None(0))?);
            Some(Spread::of(with.iter().zip(without).map(|(with, without)| figure(with, without)).collect()))
        };

        println!(
            "cost, {} ({} alternating turns; median [quartiles])",
            profilers::jdk_name(home),
            self.turns
        );
        println!("  CPU time of one sample, the kernel's part included, at {FINEST}");
        for depth in DEPTHS {
            let added = |with: &Run, without: &Run| (with.cpu_ns - without.cpu_ns) / with.samples / 1000.0;
            let ours = compared(depth, FINEST, Agent::OURS, &added);
            let theirs = compared(depth, FINEST, Agent::THEIRS, &added);
            for (agent, spread) in [(Agent::OURS, ours), (Agent::THEIRS, theirs)] {
                let Some(spread) = spread else { continue };
                let rate = |run: &Run, _: &Run| run.samples / run.wall_ns * 1e9;
                let rate = compared(depth, FINEST, agent, &rate).map_or(0.0, |rate| rate.median);
                let ratio = theirs.map(|theirs| format!("  {:>5.2} x", spread.median / theirs.median));
                println!(
                    "    {depth:>3} frames  {:<15} {:>7.2} µs [{:.2} {:.2}]{}  {rate:.0} samples/s",
                    agent.name(),
                    spread.median,
                    spread.lower_quartile,
                    spread.upper_quartile,
                    ratio.unwrap_or_default(),
                );
            }
        }
        println!("  slow-down of the program, {SLOW_DOWN_DEPTH} frames: wall time | CPU time of the process");
        let noise = ("", Agent::None(1));
        let agents = [Agent::OURS, Agent::THEIRS];
        let rest = INTERVALS.iter().flat_map(|&interval| agents.map(|agent| (interval, agent)));
        for (interval, agent) in std::iter::once(noise).chain(rest) {
            let percent = |more: f64, less: f64| 100.0 * (more / less - 1.0);
            let wall = |with: &Run, without: &Run| percent(with.wall_ns, without.wall_ns);
            let cpu = |with: &Run, without: &Run| percent(with.cpu_ns, without.cpu_ns);
            let (Some(wall), Some(cpu)) = (
                compared(SLOW_DOWN_DEPTH, interval, agent, &wall),
                compared(SLOW_DOWN_DEPTH, interval, agent, &cpu),
            ) else {
                continue;
            };
            println!(
                "    {interval:>5} {:<15} {:>+6.2} % [{:+.2} {:+.2}] | {:>+6.2} % [{:+.2} {:+.2}]",
                agent.name(),
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
        let option = match configuration.agent {
            Agent::None(_) => None,
            Agent::Some(profiler) => {
                Some(self.profilers.option(profiler, configuration.interval, "vm", &self.file))
            }
        };
        let depth = configuration.depth.to_string();
        // The same collector and heap size for all runs, since they are not to be measured.
        let rest = ["-XX:+UseSerialGC", "-Xmx256m", "-Xss4m", "-cp", &self.profilers.classes];
        let program = ["programs.FixedWork", &depth, ROUNDS];
        let arguments = option.as_deref().into_iter().chain(rest).chain(program).map(OsStr::new);
        let printed = profilers::java(Path::new(home), &[], arguments);
        let number = |name| named_number(&printed, name);
        let (cpu_ns, wall_ns) = (number("cpu_ns"), number("wall_ns"));
        let samples = if option.is_some() { self.samples() } else { 0.0 };
        // The VM's start and the warm-up are sampled as well.
        let timed_share = cpu_ns / number("process_cpu_ns");
        Run { cpu_ns, wall_ns, samples: samples * timed_share }
    }

    fn samples(&self) -> f64 {
        self.profilers.check_stacks(&self.file, &[])["samples"].as_f64().unwrap_or(0.0)
    }
}
