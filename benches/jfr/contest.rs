//! Large recordings, read and converted by otlpprof and by other programs.
//!
//! Each contender is a process that does its work once for each line that it receives. *Warm*: the process
//! stays. It has done the work [`WARM_UPS`] times before the first turn, and a turn is the time until it
//! answers. *Cold*: a turn is a process from its start to its end, which does the work once. In both cases
//! the file is in the kernel's cache, and one contender works at a time.
//!
//! Reading covers every event, and every frame of each event's stack, whose line numbers are summed. The
//! table shows how many of each were read, so that a contender that reads less is visible. Unless the table
//! says otherwise a contender decodes all fields of an event, and each stack once for a chunk. JMC's core
//! makes objects of all events, and may use several threads.
//!
//! Converting is from a file to a file in OTLP. jfrconv takes one kind of events in a run, here execution
//! samples with their threads; beside it otlpprof converts the same events and no others. The default of
//! otlpprof, all events with a stack, is a line of its own. The number of samples in each result, and their
//! sum, are shown.
//!
//! JAVA is the JVM, CLASSES the folder of the compiled `*.java` of this folder, JFR_CONVERTER
//! async-profiler's jar, JMC the class path of JDK Mission Control's core, and JFRS the program of `jfrs/`. A
//! program that is not named is not measured, with a message. TURNS sets the number of turns.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use otlpprof_otlp::wire::{ProfilesData, Sample};
use prost::Message as _;

use crate::measure::{Contender, Spread, child, compare};
use crate::ours::SERVE;

const TURNS: usize = 7;
/// The number of runs in which a JVM compiles its hottest code.
const WARM_UPS: usize = 5;

/// A contender's program.
struct Program {
    name: &'static str,
    /// The work that only this program does, or that it omits.
    note: &'static str,
    program: String,
    arguments: Vec<String>,
    /// Whether the program does its work once, without waiting for a line.
    is_command: bool,
}

/// A program that waits for its next turn.
struct Worker {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    answer: String,
}

/// Measures all programs with one recording.
pub(crate) fn run(path: &str) {
    let bytes = std::fs::metadata(path).expect("the recording").len();
    println!("{path}: {bytes} B");
    compare_all("read every event with its stack", &readers(path), bytes, None);
    convert(path, true);
}

/// Measures the converters with one recording, which jfrconv may be unable to read.
pub(crate) fn convert(path: &str, with_jfrconv: bool) {
    let bytes = std::fs::metadata(path).expect("the recording").len();
    let out = std::env::temp_dir().join(format!("otlpprof-bench-jfr.{}", std::process::id()));
    compare_all("convert to OTLP", &converters(path, &out, with_jfrconv), bytes, Some(&out));
    let _ = std::fs::remove_file(&out);
}

fn ours(arguments: &[&str]) -> Program {
    let this = std::env::current_exe().expect("this program");
    let arguments = [&[SERVE], arguments].concat().into_iter().map(str::to_owned).collect();
    let (name, note, is_command) = ("otlpprof", "", false);
    Program { name, note, program: this.to_string_lossy().into_owned(), arguments, is_command }
}

/// Returns a program of `*.java` of this folder; `None`, with a message, if the variable with its class path
/// is not set.
fn java(name: &'static str, note: &'static str, jars: Option<&str>, arguments: &[&str]) -> Option<Program> {
    let set = |variable: &str| {
        let value = std::env::var(variable).ok();
        if value.is_none() {
            println!("  {name}: NOT MEASURED, {variable} is not set (scripts/bench.sh does)");
        }
        value
    };
    let (java, classes) = (set("JAVA")?, set("CLASSES")?);
    let jars = match jars {
        Some(variable) => set(variable)?,
        None => String::new(),
    };
    let mut all = vec!["-Xmx6g".to_owned(), "-cp".to_owned(), format!("{classes}:{jars}")];
    all.extend(arguments.iter().map(|&argument| argument.to_owned()));
    Some(Program { name, note, program: java, arguments: all, is_command: false })
}

fn readers(path: &str) -> Vec<Program> {
    let typed = ours(&["read_typed", path]);
    let (name, note) = ("otlpprof, typed", "numbers and references alone, as their types have them");
    let mut all = vec![ours(&["read", path]), Program { name, note, ..typed }];
    all.extend(java("JDK RecordingFile", "", None, &["ReadByJdk", path]));
    all.extend(java("JMC flightrecorder", "", Some("JMC"), &["ReadByJmc", path]));
    let known = "passes events that it does not know; few fields";
    all.extend(java("async-profiler JfrReader", known, Some("JFR_CONVERTER"), &["ReadByJfrReader", path]));
    match std::env::var("JFRS") {
        Ok(program) => all.push(Program {
            name: "jfrs",
            note: "",
            program,
            arguments: vec![path.to_owned()],
            is_command: false,
        }),
        Err(_) => println!("  jfrs: NOT MEASURED, JFRS is not set (scripts/bench.sh does)"),
    }
    all
}

fn converters(path: &str, out: &Path, with_jfrconv: bool) -> Vec<Program> {
    let out = out.to_string_lossy();
    let named = |name, program| Program { name, ..program };
    let mut all = vec![named(
        "otlpprof, execution samples",
        ours(&["convert", path, &out, "jdk.ExecutionSample", "jdk.ActiveSetting"]),
    )];
    if with_jfrconv {
        let arguments = ["ConvertByJfrconv", path, &out];
        all.extend(java("jfrconv, execution samples", "", Some("JFR_CONVERTER"), &arguments));
    }
    all.push(named("otlpprof, all events", ours(&["convert", path, &out])));
    all.push(Program {
        name: "otlpprof convert, all events",
        note: "the command",
        program: env!("CARGO_BIN_EXE_otlpprof").to_owned(),
        arguments: ["convert", path, "-o", &out].map(str::to_owned).to_vec(),
        is_command: true,
    });
    all
}

/// Compares the programs warm and cold, and prints the work of each.
fn compare_all(title: &str, programs: &[Program], bytes: u64, out: Option<&PathBuf>) {
    let turns = std::env::var("TURNS").ok().and_then(|turns| turns.parse().ok()).unwrap_or(TURNS);
    let work = [("B", bytes as f64)];
    let done: Vec<RefCell<String>> = programs.iter().map(|_| RefCell::default()).collect();
    let mut workers: Vec<Option<Worker>> = programs.iter().map(|program| program.start()).collect();
    for (worker, done) in workers.iter_mut().zip(&done) {
        let Some(worker) = worker else { continue };
        (0..WARM_UPS).for_each(|_| worker.pass());
        *done.borrow_mut() = out.map_or_else(|| worker.read(), |out| converted(out));
    }
    let warm = programs.iter().zip(&mut workers).filter_map(|(program, worker)| {
        let worker = worker.as_mut()?;
        Some(Contender::new(program.name, &work, || worker.pass()))
    });
    compare(&format!("{title}, warm"), turns, warm.collect());
    drop(workers);
    let resident: Vec<RefCell<Vec<f64>>> = programs.iter().map(|_| RefCell::default()).collect();
    let cold = programs.iter().zip(&resident).zip(&done).map(|((program, resident), done)| {
        Contender::new(program.name, &work, move || {
            resident.borrow_mut().push(program.once() as f64 / 1024.0);
            let is_unknown = done.borrow().is_empty();
            if let Some(out) = out.filter(|_| is_unknown) {
                *done.borrow_mut() = converted(out);
            }
        })
    });
    compare(&format!("{title}, cold"), turns, cold.collect());
    println!("  what each did, and its most resident memory when cold:");
    for ((program, resident), done) in programs.iter().zip(resident).zip(done) {
        let memory = Spread::of(resident.into_inner());
        let note = if program.note.is_empty() { String::new() } else { format!("; {}", program.note) };
        println!("  {:<34} {:>6.0} MiB  {}{note}", program.name, memory.median, done.borrow());
    }
}

/// Describes the content of a result.
fn converted(out: &Path) -> String {
    let bytes = std::fs::read(out).expect("the result");
    let Ok(data) = ProfilesData::decode(&*bytes) else { return format!("{} B", bytes.len()) };
    let scopes = data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
    let samples: Vec<_> =
        scopes.flat_map(|scope| &scope.profiles).flat_map(|profile| &profile.samples).collect();
    // In a sample without values each time counts as one.
    let of_sample = |sample: &&Sample| match &sample.values[..] {
        [] => sample.timestamps_unix_nano.len() as i64,
        values => values.iter().sum(),
    };
    let sum: i64 = samples.iter().map(of_sample).sum();
    format!("{} samples of {sum} in all, {} B", samples.len(), bytes.len())
}

impl Program {
    /// Starts the program, for any number of turns; `None` for a command.
    fn start(&self) -> Option<Worker> {
        if self.is_command {
            return None;
        }
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", self.program));
        let (to, from) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        Some(Worker { child, to, from: BufReader::new(from), answer: String::new() })
    }

    /// Runs the program from its start to its end. Returns its peak resident memory in KiB.
    fn once(&self) -> i64 {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let started = Instant::now();
        #[expect(clippy::zombie_processes, reason = "it is waited for below")]
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", self.program));
        let mut to = child.stdin.take().expect("a pipe");
        if !self.is_command {
            to.write_all(b"\n").expect("somebody who reads");
        }
        drop(to);
        let mut answer = String::new();
        child.stdout.take().expect("a pipe").read_to_string(&mut answer).expect("an answer");
        child::wait(&child, started).1
    }
}

impl Worker {
    /// Makes the program do its work once.
    fn pass(&mut self) {
        let to = self.to.as_mut().expect("a pipe");
        to.write_all(b"\n").and_then(|()| to.flush()).expect("somebody who reads");
        self.answer.clear();
        self.from.read_line(&mut self.answer).expect("an answer");
        assert!(!self.answer.is_empty(), "{:?} ended", self.child);
    }

    /// Returns the program's own report of the work.
    fn read(&self) -> String {
        let numbers: Vec<&str> = self.answer.split_whitespace().collect();
        let [events, stacks, frames, check] = numbers[..] else { panic!("{}", self.answer) };
        format!("{events} events, {stacks} stacks, {frames} frames, lines {check}")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.to = None;
        let _ = self.child.wait();
    }
}
