//! `otlpprof check-stacks`: counts the samples that reach their root.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use otlpprof_core::stack_walker::StackWalker;
use otlpprof_model::attribute_keys::STACK_WALKER;
use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_otlp::encoded_profiles::EncodedResource;
use otlpprof_otlp::frames::{Frame, frames};
use otlpprof_otlp::lookup::DictionaryTables as _;
use otlpprof_otlp::roots::{Broken, Ends, Root, Verdict, classify};
use otlpprof_otlp::wire::Sample;
use serde_json::{Value, json};

use super::call_grammar::CallGrammar;
use super::exit_codes::EXIT_FAILED;
use super::format_args::{Format, FormatArgs};
use super::input::Input;
use super::report::{DEFAULT_TOP, print_rest};
use super::terminal::{self, write_json};

/// Count the samples whose stack reaches its root
///
/// A stack reaches its root if its last frame is where the thread began, and no frame is a raw address or the
/// marker of an incomplete walk, such as `[unwalkable: reason]`, `[truncated]`, or a marker of
/// async-profiler. Each observation of a stack counts once: the value if the value is a count, otherwise the
/// number of timestamps. A sample that stands for several periods of a clock counts as many times, unless
/// --distinct-times is given.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files of OTLP profiles; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Accept only known thread entries as roots, in profiles of every writer. Without this option a stack of
    /// otlpprof's is complete unless it has a marker, since otlpprof marks every incomplete stack
    #[arg(long)]
    known_roots: bool,
    /// Count distinct timestamps, in profiles that have them: a sample that stands for several periods
    /// repeats its timestamp, and counts once
    #[arg(long)]
    distinct_times: bool,
    /// The stack walker of profiles that do not name theirs. With vmx, stacks must reach native entries; with
    /// no, `[no_java_frame]` is a complete stack
    #[arg(long, value_name = "WALKER", value_parser = walker, default_value = "vm")]
    walker: StackWalker,
    /// Exit with 1 if less than this percentage reaches the root
    #[arg(long, value_name = "PERCENT")]
    at_least: Option<f64>,
    /// Check every stack against a program's call tree: lines of 'method: caller caller…', '-' for no caller.
    /// Exit with 1 if a method has a caller that the tree does not allow
    #[arg(long, value_name = "FILE")]
    grammar: Option<PathBuf>,
    /// Print this many rows of each table: of the roots, the ends of broken stacks, the impossible calls
    /// [default: 20, all with --format json]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    #[command(flatten)]
    form: FormatArgs,
}

/// The number of stacks for which observations are summed before the stacks are judged.
const STACKS_AT_A_TIME: usize = 1 << 17;
/// The most names of each kind that are counted separately, and the most bytes that are kept of a name.
const NAMES: usize = 1 << 14;
const NAME_BYTES: usize = 1 << 10;
/// Stands for all further names.
const OTHERS: &str = "(others)";

/// Cuts a name to the part that is kept.
fn kept(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES)]
}

/// Adds to the count of a key, or to that of `others` if there are too many keys.
fn add_to<K: Eq + Hash>(sums: &mut HashMap<K, u64>, key: K, count: u64, others: impl FnOnce() -> K) {
    let is_known = sums.len() < NAMES || sums.contains_key(&key);
    let sum = sums.entry(if is_known { key } else { others() }).or_default();
    *sum = sum.saturating_add(count);
}

/// Observations by kind of root or kind of break, and by the frame that shows it.
type Histogram = HashMap<(&'static str, String), u64>;

#[derive(Debug, Default)]
struct Tally {
    reached: Histogram,
    broken: Histogram,
    /// Whether any sample has a timestamp.
    timed: bool,
    /// Impossible calls, by callee and caller. `None` without a grammar.
    illegal: Option<HashMap<(String, String), u64>>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let grammar = args.grammar.as_deref().map(CallGrammar::read).transpose()?;
    let mut tally = Tally { illegal: grammar.is_some().then(HashMap::new), ..Tally::default() };
    for input in Input::open_whole(&args.files)? {
        for message in input.messages()? {
            tally.add(&message?, args, grammar.as_ref());
        }
    }
    tally.accept_initializers_of_main_classes();
    if args.distinct_times && !tally.timed {
        anyhow::bail!("no sample has a time: --distinct-times is for profiles taken with timestamps=true");
    }
    let mut out = terminal::stdout();
    match args.form.format() {
        Format::Text => tally.print(args.top.unwrap_or(DEFAULT_TOP), &mut out)?,
        Format::Json => write_json(&tally.to_json(args.top.unwrap_or(usize::MAX)), &mut out)?,
    }
    out.flush()?;
    let enough =
        args.at_least.is_none_or(|least| tally.percent_reached() >= least) && tally.illegal_calls() == 0;
    Ok(if enough { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) })
}

fn walker(name: &str) -> Result<StackWalker, String> {
    let names = || StackWalker::ALL.map(StackWalker::name).join(", ");
    StackWalker::from_name(name).ok_or_else(|| format!("must be one of {}", names()))
}

/// The number of times that a sample was observed. Values are counts only if the unit says so. A sample
/// without timestamps counts as at least one: a profiler omits the timestamps where they would be too many.
fn observations(sample: &Sample, unit: &str, distinct_times: bool) -> u64 {
    match unit {
        _ if distinct_times => sample.timestamps_unix_nano.iter().collect::<HashSet<_>>().len().max(1) as u64,
        "count" | "1" if !sample.values.is_empty() => {
            sample.values.iter().map(|&value| u64::try_from(value).unwrap_or(0)).fold(0, u64::saturating_add)
        }
        _ => sample.values.len().max(sample.timestamps_unix_nano.len()) as u64,
    }
}

fn sum(histogram: &Histogram) -> u64 {
    histogram.values().fold(0, |sum, &count| sum.saturating_add(count))
}

/// The entries with the highest counts. Entries with equal counts are sorted by name.
fn top(histogram: &Histogram, most: usize) -> Vec<(&'static str, &str, u64)> {
    let mut entries: Vec<_> =
        histogram.iter().map(|((kind, name), &count)| (*kind, &**name, count)).collect();
    entries.sort_unstable_by_key(|&(kind, name, count)| (Reverse(count), kind, name));
    entries.truncate(most);
    entries
}

/// Counts by kind only, the highest first.
fn by_kind(histogram: &Histogram) -> Vec<(&'static str, u64)> {
    let mut kinds = HashMap::<_, u64>::new();
    for (&(kind, _), &count) in histogram {
        let sum = kinds.entry(kind).or_default();
        *sum = sum.saturating_add(count);
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_unstable_by_key(|&(kind, count)| (Reverse(count), kind));
    kinds
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

impl Tally {
    fn add(&mut self, message: &EncodedMessage, args: &Args, grammar: Option<&CallGrammar>) {
        let tables = message.tables();
        for scope in message.resources().flat_map(EncodedResource::scopes) {
            let of_scope = scope.scope().unwrap_or_default();
            let ends = if args.known_roots { Ends::Unmarked } else { Ends::of_scope(&of_scope.name) };
            for profile in scope.profiles() {
                let header = profile.header();
                let named = tables.attribute_text(&header.attribute_indices, STACK_WALKER);
                let walker = named.and_then(StackWalker::from_name).unwrap_or(args.walker);
                let (_, unit) = tables.value_type(header.sample_type);
                // Each stack is judged once, however many samples have it.
                let mut by_stack = HashMap::<i32, u64>::new();
                let mut judge = |by_stack: &mut HashMap<i32, u64>| {
                    for (stack, count) in by_stack.drain() {
                        self.judge(&frames(tables, stack), count, ends, walker, grammar);
                    }
                };
                let mut timed = false;
                for sample in profile.samples() {
                    timed |= !sample.timestamps_unix_nano.is_empty();
                    let sum = by_stack.entry(sample.stack_index).or_default();
                    *sum = sum.saturating_add(observations(&sample, unit, args.distinct_times));
                    if by_stack.len() >= STACKS_AT_A_TIME {
                        judge(&mut by_stack);
                    }
                }
                judge(&mut by_stack);
                self.timed |= timed;
            }
        }
    }

    /// Counts a stack that was observed `count` times.
    fn judge(
        &mut self,
        frames: &[Frame<'_>],
        count: u64,
        ends: Ends,
        walker: StackWalker,
        grammar: Option<&CallGrammar>,
    ) {
        if let Some((callee, caller)) = grammar.and_then(|grammar| grammar.illegal_call(frames)) {
            let call = (kept(&callee).to_owned(), kept(&caller).to_owned());
            add_to(self.illegal.get_or_insert_default(), call, count, || (OTHERS.into(), OTHERS.into()));
        }
        let (histogram, kind, frame) = match classify(frames, ends, walker) {
            Verdict::Reached(root, frame) => (&mut self.reached, root.name(), frame),
            Verdict::Broken(reason, frame) => (&mut self.broken, reason.name(), frame),
        };
        add_to(histogram, (kind, kept(frame).to_owned()), count, || (kind, OTHERS.into()));
    }

    /// Counts stacks that end in the static initializer of a class whose `main` is a root as complete: the
    /// launcher initializes the main class before it calls `main`. Other classes are initialized by calls
    /// from Java, which would be below.
    fn accept_initializers_of_main_classes(&mut self) {
        let java_end = Broken::JavaEnd.name();
        let Self { reached, broken, .. } = self;
        let accepted = broken.extract_if(|(kind, name), _| {
            let class = name.strip_suffix("<clinit>");
            let main = class.map(|class| (Root::Java.name(), format!("{class}main")));
            *kind == java_end && main.is_some_and(|main| reached.contains_key(&main))
        });
        let accepted: Vec<_> = accepted.collect();
        for ((_, name), count) in accepted {
            add_to(reached, (Root::Java.name(), name), count, || (Root::Java.name(), OTHERS.into()));
        }
    }

    /// Number of samples with a call that the grammar does not allow.
    fn illegal_calls(&self) -> u64 {
        self.illegal.iter().flatten().fold(0, |sum, (_, &count)| sum.saturating_add(count))
    }

    /// The most frequent of the calls that the grammar does not allow: callee, caller, samples.
    fn top_illegal(&self, most: usize) -> Vec<(&str, &str, u64)> {
        let calls = self.illegal.iter().flatten();
        let mut calls: Vec<_> =
            calls.map(|((callee, caller), &count)| (&**callee, &**caller, count)).collect();
        calls.sort_unstable_by_key(|&(callee, caller, count)| (Reverse(count), callee, caller));
        calls.truncate(most);
        calls
    }

    fn percent_reached(&self) -> f64 {
        let (reached, broken) = (sum(&self.reached), sum(&self.broken));
        percent(reached, reached.saturating_add(broken))
    }

    fn print(&self, most: usize, out: &mut dyn Write) -> io::Result<()> {
        let (reached, broken) = (sum(&self.reached), sum(&self.broken));
        let all = reached.saturating_add(broken);
        writeln!(
            out,
            "{all} samples: {reached} reach their root ({:.3} %), {broken} do not",
            self.percent_reached()
        )?;
        for (title, histogram) in [("reached", &self.reached), ("broken", &self.broken)] {
            for (kind, count) in by_kind(histogram) {
                writeln!(out, "{title} {kind:<14} {count:>10} {:>8.3} %", percent(count, all))?;
            }
        }
        for (title, histogram) in [("roots", &self.reached), ("ends of broken stacks", &self.broken)] {
            if !histogram.is_empty() {
                writeln!(out)?;
                writeln!(out, "{title}:")?;
            }
            for (kind, name, count) in top(histogram, most) {
                writeln!(out, "{count:>10} {:>8.3} %  {kind:<14} {name}", percent(count, all))?;
            }
            print_rest(histogram.len(), most, out)?;
        }
        let Some(calls) = &self.illegal else { return Ok(()) };
        let illegal = self.illegal_calls();
        writeln!(out)?;
        writeln!(out, "{illegal} samples with an impossible call ({:.3} %)", percent(illegal, all))?;
        for (callee, caller, count) in self.top_illegal(most) {
            writeln!(out, "{count:>10} {:>8.3} %  {callee} called by {caller}", percent(count, all))?;
        }
        print_rest(calls.len(), most, out)
    }

    fn to_json(&self, most: usize) -> Value {
        let kinds = |histogram| by_kind(histogram).into_iter().map(|(kind, count)| (kind, json!(count)));
        let entries = |histogram| {
            let entry = |(kind, name, count)| json!({ "kind": kind, "frame": name, "samples": count });
            top(histogram, most).into_iter().map(entry).collect::<Value>()
        };
        let illegal = self.illegal.as_ref().map(|_| self.illegal_calls());
        let illegal_call =
            |(callee, caller, count)| json!({ "callee": callee, "caller": caller, "samples": count });
        json!({
            "illegalCalls": illegal,
            "topIllegalCalls": self.top_illegal(most).into_iter().map(illegal_call).collect::<Value>(),
            "samples": sum(&self.reached).saturating_add(sum(&self.broken)),
            "reached": sum(&self.reached),
            "broken": sum(&self.broken),
            "percentReached": self.percent_reached(),
            "reachedByRoot": kinds(&self.reached).collect::<Value>(),
            "brokenByReason": kinds(&self.broken).collect::<Value>(),
            "roots": entries(&self.reached),
            "brokenEnds": entries(&self.broken),
        })
    }
}
