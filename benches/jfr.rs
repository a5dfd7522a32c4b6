//! Recordings: the published benchmark grid of the Java converter on recordings made here, and large
//! recordings read and converted beside other programs (`jfr/contest.rs` lists them, and the work of each).
//!
//! RECORDINGS are the large recordings, separated by colons; without them only the grid is measured. With
//! MEGABYTES each recording is repeated until it has that size.

#[path = "jfr/contest.rs"]
mod contest;
#[path = "jfr/enlarge.rs"]
mod enlarge;
mod measure;
#[path = "jfr/ours.rs"]
mod ours;

use std::hint::black_box;

use measure::{Contender, compare};
use otlpprof_convert::{ConvertOptions, JfrToOtlp};
use otlpprof_otlp::{EncodeOptions, encode};
use otlpprof_testkit::recordings::random_frames::{self, RandomShape};
use otlpprof_testkit::recordings::synthetic::{self, Shape};

const GRID_TURNS: usize = 11;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, work @ ..] = &arguments[..]
        && flag == ours::SERVE
    {
        return ours::serve(work);
    }
    grid("shared roots", of_shared_roots);
    grid("random frames", of_random_frames);
    largest_cell();
    let Ok(recordings) = std::env::var("RECORDINGS") else {
        println!("large recordings: NOT MEASURED, RECORDINGS is not set (scripts/bench.sh does)");
        return;
    };
    let megabytes: usize =
        std::env::var("MEGABYTES").ok().and_then(|number| number.parse().ok()).unwrap_or_default();
    for path in recordings.split(':') {
        if megabytes == 0 {
            contest::run(path);
            continue;
        }
        let large = enlarge::enlarge(path, megabytes * 1_000_000);
        contest::run(&large.to_string_lossy());
        std::fs::remove_file(large).expect("the large recording");
    }
}

fn convert(recording: &[u8]) -> Vec<u8> {
    let mut converter = JfrToOtlp::new(ConvertOptions::default());
    converter.add(recording).expect("a recording that is whole");
    encode(&converter.convert(), &EncodeOptions::default())
}

/// Measures the grid's recordings: 50, 500 and 5,000 events of depth 10, 50 and 100, of which 0, 70 and 90 %
/// share their stack with another event, in 100 and 1,000 traces.
///
/// `recording` makes a recording from a number of events, a depth, a percentage of repeated stacks and a
/// number of traces.
fn grid(frames: &str, recording: impl Fn(usize, usize, usize, usize) -> Vec<u8>) {
    for traces in [100, 1_000] {
        for repeated_percent in [0, 70, 90] {
            for events in [50, 500, 5_000] {
                let recordings =
                    [10, 50, 100].map(|depth| (depth, recording(events, depth, repeated_percent, traces)));
                let contenders = recordings.iter().map(|(depth, bytes)| {
                    let work = [("events", events as f64), ("B", bytes.len() as f64)];
                    Contender::new(&format!("depth {depth}"), &work, || {
                        black_box(convert(bytes));
                    })
                });
                let title = format!(
                    "convert {events} events of {frames}, {repeated_percent} % of stacks repeated, {traces} \
                     traces"
                );
                compare(&title, GRID_TURNS, contenders.collect());
            }
        }
    }
}

/// Makes a recording with stacks that share their roots: 500 methods.
fn of_shared_roots(events: usize, depth: usize, repeated_percent: usize, contexts: usize) -> Vec<u8> {
    let (remote_frames, compressed) = (0, true);
    synthetic::recording(Shape { events, depth, repeated_percent, contexts, remote_frames, compressed })
}

/// Makes a recording with stacks that share nothing, as in the Java converter's own grid.
fn of_random_frames(events: usize, depth: usize, repeated_percent: usize, spans: usize) -> Vec<u8> {
    let event = "datadog.ExecutionSample";
    let has_inline_frames = false;
    random_frames::recording(RandomShape { event, events, depth, repeated_percent, spans, has_inline_frames })
}

/// Measures the grid's largest cell of random frames, converted from file to file: processes, warm and cold,
/// with their memory. The second recording has the encoding that jfrconv can read. The events are
/// `jdk.ExecutionSample`, since jfrconv supports no other events of the grid.
fn largest_cell() {
    let event = "jdk.ExecutionSample";
    let (events, depth, repeated_percent, spans) = (5_000, 100, 0, 1_000);
    for has_inline_frames in [false, true] {
        let shape = RandomShape { event, events, depth, repeated_percent, spans, has_inline_frames };
        let path = std::env::temp_dir().join(format!("otlpprof-bench-grid.{}.jfr", std::process::id()));
        std::fs::write(&path, random_frames::recording(shape)).expect("the recording");
        println!("{events} events of {depth} random frames, inline: {has_inline_frames}");
        contest::convert(&path.to_string_lossy(), has_inline_frames);
        std::fs::remove_file(&path).expect("the recording");
    }
}
