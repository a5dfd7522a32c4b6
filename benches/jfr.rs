//! Recordings: the published benchmark grid of the Java converter on recordings made here, and large recordings read and
//! converted beside others (`jfr/contest.rs` says whom, and what each does).
//!
//! RECORDINGS are the large ones, separated by colons; without them only the grid is measured. With MEGABYTES each of them
//! is put behind itself until it has so many.

#[path = "jfr/contest.rs"]
mod contest;
#[path = "jfr/enlarge.rs"]
mod enlarge;
mod measure;
#[path = "jfr/ours.rs"]
mod ours;
#[path = "../tests/jfr_support/synthetic.rs"]
mod synthetic;

use std::hint::black_box;

use measure::{Contender, compare};
use otlpprof::convert::{ConvertOptions, JfrToOtlp};
use otlpprof::otlp::{EncodeOptions, encode};
use synthetic::{Shape, recording};

const GRID_TURNS: usize = 11;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, work @ ..] = &arguments[..]
        && flag == ours::SERVE
    {
        return ours::serve(work);
    }
    grid();
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

/// 50, 500 and 5,000 events, of depth 10, 50 and 100, of which 0, 70 and 90 % have a stack that others have, in 100 and
/// 1,000 traces.
fn grid() {
    for contexts in [100, 1_000] {
        for repeated_percent in [0, 70, 90] {
            for events in [50, 500, 5_000] {
                let recordings = [10, 50, 100].map(|depth| {
                    let compressed = true;
                    let shape =
                        Shape { events, depth, repeated_percent, contexts, remote_frames: 0, compressed };
                    (depth, recording(shape))
                });
                let contenders = recordings.iter().map(|(depth, bytes)| {
                    let work = [("events", events as f64), ("B", bytes.len() as f64)];
                    Contender::new(&format!("depth {depth}"), &work, || {
                        black_box(convert(bytes));
                    })
                });
                let title = format!(
                    "convert {events} events, {repeated_percent} % of stacks repeated, {contexts} traces"
                );
                compare(&title, GRID_TURNS, contenders.collect());
            }
        }
    }
}
