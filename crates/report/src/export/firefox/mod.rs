//! The processed profile format of the Firefox Profiler, version 50. Later versions of the profiler upgrade
//! it.
//!
//! Source: `src/types/profile.js` of the Firefox Profiler at that version. Weights of samples are numbers of
//! milliseconds, of bytes, or of events. A sample without a time of its own is placed within its profile, at
//! equal distances from the other samples of its thread.
//!
//! A thread has samples of one weight. Of several measures each is a process of its own, with the threads
//! that have samples.
//!
//! | Module | Duty |
//! |---|---|
//! | `stacks` | the stacks of a file |
//! | `libraries` | the libraries of a profile, identified as Breakpad does |
//! | `thread_tables` | the tables of a thread: stacks, frames, functions, libraries, texts |
//! | `table` | the columns of one table, written value by value |

mod libraries;
mod stacks;
mod table;
mod thread_tables;

use std::io::{self, Write};

use otlpprof_model::attribute_keys;
use serde_json::{Value, json};

use self::libraries::libraries;
pub use self::stacks::Stacks;
use self::table::Table;
use self::thread_tables::ThreadTables;
use super::thread_samples::{KindSamples, Thread, ThreadSample, ThreadSamples};
use crate::call_tree::NodeId;
use crate::measure::{Measure, Weight};

/// The version of the format.
const VERSION: u32 = 50;
/// The version of the format that browsers write, which goes with [`VERSION`].
const GECKO_VERSION: u32 = 30;
/// Names and colours of categories, in the order of [`thread_tables::category`].
const CATEGORIES: [(&str, &str); 6] = [
    ("Other", "grey"),
    ("Java", "green"),
    ("Native", "blue"),
    ("Kernel", "orange"),
    ("VM stub", "yellow"),
    ("Other language", "purple"),
];

/// Writes the file. `product` names the profiled program.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(
    stacks: Stacks<'_>,
    mut samples: ThreadSamples,
    product: &str,
    weight: Weight,
    out: &mut dyn Write,
) -> io::Result<()> {
    let kinds = samples.take_kinds();
    let is_single = kinds.len() == 1;
    let placed: Vec<(usize, &Measure, Vec<Placed>)> = kinds
        .iter()
        .flat_map(|KindSamples { measure, threads }| {
            threads.iter().map(move |(thread, of_thread)| (*thread, measure, placed(of_thread)))
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
    let libraries = libraries(stacks.objects);
    write!(out, "{{\"meta\":{meta},\"libs\":{libraries},\"pages\":[],\"threads\":[")?;
    for (at, (number, measure, of_thread)) in placed.iter().enumerate() {
        let shown_measure = (!is_single).then_some(*measure);
        let described = describe(&samples, &samples.threads()[*number], shown_measure);
        let weights = Weights::of(weight.unit(measure));
        out.write_all(if at == 0 { b"" } else { b"," })?;
        write_thread(stacks, &described, of_thread, weights, start_ns, out)?;
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

/// The description of a thread and its process, to which [`write_thread`] adds samples and tables. The
/// process is called after the measure, if one is given.
fn describe(samples: &ThreadSamples, thread: &Thread, measure: Option<&Measure>) -> Value {
    let of_process = |key| samples.processes.attribute(thread.process, key);
    let pid = match of_process(attribute_keys::PROCESS_PID) {
        "" => thread.process.to_string(),
        pid => pid.to_owned(),
    };
    let service = of_process(attribute_keys::SERVICE_NAME);
    let (pid, process) = match measure {
        None => (pid, service.to_owned()),
        // The viewer groups threads by the process id.
        Some(measure) => (format!("{pid} {}", measure.name), format!("{}: {service}", measure.name)),
    };
    let name = thread.label();
    let tid = if thread.id.is_empty() { name.clone() } else { thread.id.clone() };
    json!({
        "processType": "default",
        "processName": process,
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
        "nativeSymbols": { "libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0 },
    })
}

/// Writes a thread: its description, samples and tables.
fn write_thread(
    stacks: Stacks<'_>,
    described: &Value,
    samples: &[Placed],
    weights: Weights,
    start_ns: u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut tables = ThreadTables::default();
    let of_samples: Vec<_> = samples.iter().map(|sample| tables.stack(stacks, sample.node)).collect();
    let described = described.to_string();
    write!(out, "{}", described.strip_suffix('}').unwrap_or(&described))?;
    let mut table = Table::begin("samples", samples.len(), out)?;
    table.column("stack", of_samples.iter())?;
    table.column("time", samples.iter().map(|sample| milliseconds(sample.unix_ns - start_ns)))?;
    table.column("weight", samples.iter().map(|sample| weights.weight(sample.value)))?;
    table.text("weightType", weights.name())?;
    table.end()?;
    tables.write(out)?;
    out.write_all(b"}")
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
