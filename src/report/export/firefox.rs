//! The processed profile format of the Firefox Profiler, version 50. Later versions of the profiler upgrade
//! it.
//!
//! Source: `src/types/profile.js` of the Firefox Profiler at that version. Weights of samples are numbers of
//! milliseconds, of bytes, or of events. A sample without a time of its own is placed within its profile, at
//! equal distances from the other samples of its thread.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::thread_samples::{KindSamples, Thread, ThreadSample, ThreadSamples};
use crate::model::attribute_keys;
use crate::report::call_tree::{CallTree, NodeId, ROOT};
use crate::report::frame_table::{FrameId, FrameKind, FrameTable};
use crate::report::measure::Weight;

/// The version of the format.
const VERSION: u32 = 50;
/// The version of the format that browsers write, which goes with [`VERSION`].
const GECKO_VERSION: u32 = 30;
/// Names and colours of categories, in the order of [`category`].
const CATEGORIES: [(&str, &str); 4] =
    [("Other", "grey"), ("Java", "green"), ("Native", "blue"), ("Kernel", "orange")];

/// Writes the file. `product` names the profiled program.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(
    tree: &CallTree,
    frames: &FrameTable,
    mut samples: ThreadSamples,
    product: &str,
    weight: Weight,
    out: &mut dyn Write,
) -> io::Result<()> {
    let kinds = samples.take_kinds();
    let placed: Vec<(usize, &str, Vec<Placed>)> = kinds
        .iter()
        .flat_map(|KindSamples { measure, threads }| {
            threads.iter().map(move |(thread, of_thread)| (*thread, weight.unit(measure), placed(of_thread)))
        })
        .collect();
    let times = || placed.iter().flat_map(|(.., samples)| samples.iter().map(|sample| sample.unix_ns));
    let (start_ns, end_ns) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let most = placed.iter().map(|(.., samples)| samples.len()).max().unwrap_or(0).max(1);
    let meta = json!({
        "version": GECKO_VERSION,
        "preprocessedProfileVersion": VERSION,
        "interval": (milliseconds(end_ns - start_ns) / most as f64).max(0.001),
        "startTime": milliseconds(start_ns),
        "processType": 0,
        "stackwalk": 0,
        "debug": false,
        "product": product,
        "importedFrom": concat!("otlpprof ", env!("CARGO_PKG_VERSION")),
        "categories": CATEGORIES
            .map(|(name, color)| json!({ "name": name, "color": color, "subcategories": ["Other"] })),
        "markerSchema": [],
        "symbolicationNotSupported": true,
        "usesOnlyOneStackType": true,
        "doesNotUseFrameImplementation": true,
        "sourceCodeIsNotOnSearchfox": true,
        "keepProfileThreadOrder": true,
    });
    write!(out, "{{\"meta\":{meta},\"libs\":[],\"pages\":[],\"threads\":[")?;
    for (at, (number, unit, of_thread)) in placed.iter().enumerate() {
        let described = describe(&samples, &samples.threads()[*number]);
        let thread = thread(tree, frames, described, of_thread, Weights::of(unit), start_ns);
        write!(out, "{}{thread}", if at == 0 { "" } else { "," })?;
    }
    writeln!(out, "]}}")
}

/// A sample with a time.
struct Placed {
    unix_ns: u64,
    node: NodeId,
    value: i64,
}

/// The samples with their times, in the order of time. Samples without a time of their own are spread.
fn placed(samples: &[ThreadSample]) -> Vec<Placed> {
    let mut placed = Vec::with_capacity(samples.len());
    let of_profiles =
        samples.chunk_by(|one, other| (one.unix_ns, one.length_ns) == (other.unix_ns, other.length_ns));
    for of_profile in of_profiles {
        let count = of_profile.len() as u128;
        for (at, sample) in (0_u128..).zip(of_profile) {
            let offset = u128::from(sample.length_ns) * (2 * at + 1) / (2 * count);
            // SANITY: the offset is less than the length.
            let unix_ns = sample.unix_ns.saturating_add(offset as u64);
            placed.push(Placed { unix_ns, node: sample.node, value: sample.value });
        }
    }
    placed.sort_by_key(|sample| sample.unix_ns);
    placed
}

/// The unit of a thread's weights.
#[derive(Clone, Copy)]
enum Weights {
    Milliseconds,
    Bytes,
    Samples,
}

impl Weights {
    fn of(unit: &str) -> Self {
        match unit {
            "nanoseconds" => Self::Milliseconds,
            "bytes" => Self::Bytes,
            _ => Self::Samples,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Milliseconds => "tracing-ms",
            Self::Bytes => "bytes",
            Self::Samples => "samples",
        }
    }

    fn weight(self, value: i64) -> Value {
        match self {
            Self::Milliseconds => json!(value as f64 / 1e6),
            Self::Bytes | Self::Samples => json!(value),
        }
    }
}

/// The description of a thread and its process, to which [`thread`] adds tables and samples.
fn describe(samples: &ThreadSamples, thread: &Thread) -> Value {
    let of_process = |key| samples.processes.attribute(thread.process, key);
    let pid = match of_process(attribute_keys::PROCESS_PID) {
        "" => thread.process.to_string(),
        pid => pid.to_owned(),
    };
    let name = thread.label();
    let tid = if thread.id.is_empty() { name.clone() } else { thread.id.clone() };
    json!({
        "processType": "default",
        "processName": of_process(attribute_keys::SERVICE_NAME),
        "processStartupTime": 0,
        "processShutdownTime": null,
        "registerTime": 0,
        "unregisterTime": null,
        "pausedRanges": [],
        "isMainThread": name == "main",
        "name": name,
        "pid": pid,
        "tid": tid,
        "markers": {
            "data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [], "length": 0
        },
        "resourceTable": { "lib": [], "name": [], "host": [], "type": [], "length": 0 },
        "nativeSymbols": { "libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0 },
    })
}

/// A thread with its tables and samples.
fn thread(
    tree: &CallTree,
    frames: &FrameTable,
    mut described: Value,
    samples: &[Placed],
    weights: Weights,
    start_ns: u64,
) -> Value {
    let mut tables = ThreadTables::default();
    let stacks: Vec<_> = samples.iter().map(|sample| tables.stack(tree, frames, sample.node)).collect();
    described["samples"] = json!({
        "length": samples.len(),
        "stack": stacks,
        "time": samples.iter().map(|sample| milliseconds(sample.unix_ns - start_ns)).collect::<Vec<_>>(),
        "weight": samples.iter().map(|sample| weights.weight(sample.value)).collect::<Vec<_>>(),
        "weightType": weights.name(),
    });
    tables.add_to(&mut described);
    described
}

/// The tables of a thread.
#[derive(Default)]
struct ThreadTables {
    strings: Vec<String>,
    string_ids: HashMap<String, usize>,
    /// Name and file of each function.
    functions: Vec<(usize, Option<usize>)>,
    function_ids: HashMap<(usize, Option<usize>), usize>,
    /// Function, category and line of each frame.
    frames: Vec<(usize, usize, Option<i64>)>,
    frame_ids: HashMap<FrameId, usize>,
    /// Frame and caller of each stack.
    stacks: Vec<(usize, Option<usize>)>,
    stack_ids: HashMap<NodeId, usize>,
}

impl ThreadTables {
    /// The index of a node's stack; `None` for the root. Callers come first.
    fn stack(&mut self, tree: &CallTree, frames: &FrameTable, node: NodeId) -> Option<usize> {
        let mut missing = Vec::new();
        let mut known = node;
        while known != ROOT && !self.stack_ids.contains_key(&known) {
            missing.push(known);
            known = tree.parent(known);
        }
        let mut stack = self.stack_ids.get(&known).copied();
        for node in missing.into_iter().rev() {
            let frame = self.frame(frames, tree.frame(node));
            let next = self.stacks.len();
            self.stacks.push((frame, stack));
            self.stack_ids.insert(node, next);
            stack = Some(next);
        }
        stack
    }

    fn frame(&mut self, frames: &FrameTable, id: FrameId) -> usize {
        if let Some(&known) = self.frame_ids.get(&id) {
            return known;
        }
        let entry = frames.get(id);
        let name = self.string(&entry.name);
        let file = if entry.file.is_empty() { None } else { Some(self.string(&entry.file)) };
        let next = self.functions.len();
        let function = *self.function_ids.entry((name, file)).or_insert_with(|| {
            self.functions.push((name, file));
            next
        });
        let line = Some(entry.line).filter(|&line| line != 0);
        let frame = self.frames.len();
        self.frames.push((function, category(entry.kind), line));
        self.frame_ids.insert(id, frame);
        frame
    }

    fn string(&mut self, text: &str) -> usize {
        if let Some(&known) = self.string_ids.get(text) {
            return known;
        }
        let id = self.strings.len();
        self.strings.push(text.to_owned());
        self.string_ids.insert(text.to_owned(), id);
        id
    }

    fn add_to(self, thread: &mut Value) {
        let Self { strings, functions, frames, stacks, .. } = self;
        let all = |value: Value, count: usize| vec![value; count];
        let (functions_count, count) = (functions.len(), frames.len());
        let categories: Vec<_> = stacks.iter().map(|&(frame, _)| frames[frame].1).collect();
        thread["funcTable"] = json!({
            "length": functions_count,
            "name": functions.iter().map(|&(name, _)| name).collect::<Vec<_>>(),
            "fileName": functions.iter().map(|&(_, file)| file).collect::<Vec<_>>(),
            "isJS": all(json!(false), functions_count),
            "relevantForJS": all(json!(false), functions_count),
            "resource": all(json!(-1), functions_count),
            "lineNumber": all(Value::Null, functions_count),
            "columnNumber": all(Value::Null, functions_count),
        });
        thread["frameTable"] = json!({
            "length": count,
            "func": frames.iter().map(|&(function, ..)| function).collect::<Vec<_>>(),
            "category": frames.iter().map(|&(_, category, _)| category).collect::<Vec<_>>(),
            "line": frames.iter().map(|&(.., line)| line).collect::<Vec<_>>(),
            "subcategory": all(json!(0), count),
            "address": all(json!(-1), count),
            "inlineDepth": all(json!(0), count),
            "nativeSymbol": all(Value::Null, count),
            "innerWindowID": all(json!(0), count),
            "implementation": all(Value::Null, count),
            "column": all(Value::Null, count),
        });
        thread["stackTable"] = json!({
            "length": stacks.len(),
            "frame": stacks.iter().map(|&(frame, _)| frame).collect::<Vec<_>>(),
            "prefix": stacks.iter().map(|&(_, caller)| caller).collect::<Vec<_>>(),
            "subcategory": all(json!(0), stacks.len()),
            "category": categories,
        });
        thread["stringArray"] = json!(strings);
    }
}

/// The number of a frame's category.
fn category(kind: FrameKind) -> usize {
    match kind {
        FrameKind::Stub | FrameKind::Marker => 0,
        FrameKind::Managed => 1,
        FrameKind::Native => 2,
        FrameKind::Kernel => 3,
    }
}

fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_without_a_time_are_spread_over_their_profile() {
        let sample = |unix_ns, length_ns, node| ThreadSample { unix_ns, length_ns, node, value: 1 };
        let times = |samples: &[ThreadSample]| {
            placed(samples).iter().map(|sample| (sample.unix_ns, sample.node)).collect::<Vec<_>>()
        };
        let spread = [sample(1_000, 100, 1), sample(1_000, 100, 2), sample(1_100, 100, 1)];
        assert_eq!(times(&spread), [(1_025, 1), (1_075, 2), (1_150, 1)]);
        assert_eq!(times(&[sample(5, 0, 1), sample(5, 0, 2), sample(7, 0, 1)]), [(5, 1), (5, 2), (7, 1)]);
    }
}
