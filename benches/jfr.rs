//! Recordings: the published benchmark grid of the Java converter on recordings made here, and a large recording read and
//! converted, beside async-profiler's jfrconv and the JDK's own reader.
//!
//! RECORDING is the large one; JFR_CONVERTER is jfrconv's jar, JAVA the JVM, CLASSES where `jfr/ReadRecording.java` is
//! compiled. Without them only the grid is measured.

mod measure;
#[path = "../tests/jfr_support/synthetic.rs"]
mod synthetic;

use std::hint::black_box;
use std::process::{Command, Stdio};

use measure::{Contender, compare};
use otlpprof::convert::{ConvertOptions, JfrToOtlp};
use otlpprof::jfr::numbers::{Numbers, element_type};
use otlpprof::jfr::recording::Chunks;
use otlpprof::jfr::values::Value;
use otlpprof::otlp::{EncodeOptions, encode};
use synthetic::{Shape, recording};

const GRID_TURNS: usize = 11;
const TURNS: usize = 7;
/// How often the JDK's reader reads the large recording in one JVM, the first time cold.
const JDK_PASSES: &str = "5";

fn main() {
    grid();
    if let Ok(path) = std::env::var("RECORDING") {
        large(&path);
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

/// Goes through all events, and counts them.
fn count(bytes: &[u8]) -> u64 {
    let chunks = Chunks::new(bytes).map_while(Result::ok);
    chunks.map(|chunk| chunk.contents().events().map_while(Result::ok).count() as u64).sum()
}

/// Reads every field of every event, and the frames of each distinct stack.
fn read_all(bytes: &[u8]) -> (u64, u64) {
    let (mut fields, mut frames) = (0, 0);
    for chunk in Chunks::new(bytes).map_while(Result::ok) {
        let chunk = chunk.contents();
        let mut seen = Vec::new();
        let mut numbers: Option<Numbers> = None;
        for event in chunk.events().map_while(Result::ok) {
            for (field, value) in event.values().fields().map_while(Result::ok) {
                fields += 1;
                let Value::Constant(constant) = value else { continue };
                if &*field.name != "stackTrace" {
                    continue;
                }
                let Some(position) = chunk.constant_position(constant) else { continue };
                if seen.len() <= position {
                    seen.resize(chunk.constant_count(constant.of).max(position + 1), false);
                }
                if std::mem::replace(&mut seen[position], true) {
                    continue;
                }
                let trace = value.as_struct(chunk).and_then(|trace| trace.get("frames"));
                let Some(Value::Array(array)) = trace else { continue };
                let Some(of) = element_type(&Value::Array(array)) else { continue };
                let numbers = numbers.get_or_insert_with(|| {
                    Numbers::new(chunk, of, &["method", "lineNumber", "bytecodeIndex", "type"])
                });
                let _ = numbers.each::<4>(&array, |frame| frames += u64::from(frame[0] != 0));
            }
        }
    }
    (fields, frames)
}

fn large(path: &str) {
    let bytes = std::fs::read(path).expect("the recording");
    let events = count(&bytes);
    let (fields, frames) = read_all(&bytes);
    println!(
        "{path}: {} B, {events} events, {fields} fields, {frames} frames of distinct stacks",
        bytes.len()
    );
    let work = [("events", events as f64), ("B", bytes.len() as f64)];
    compare(
        "in one process",
        TURNS,
        vec![
            Contender::new("go through all events", &work, || {
                black_box(count(&bytes));
            }),
            Contender::new("read all fields and distinct stacks", &work, || {
                black_box(read_all(&bytes));
            }),
            Contender::new("convert to OTLP", &work, || {
                black_box(convert(&bytes));
            }),
        ],
    );
    let Ok(java) = std::env::var("JAVA") else { return };
    let out = std::env::temp_dir().join(format!("otlpprof-bench-jfr.{}", std::process::id()));
    let mut contenders = vec![Contender::new("otlpprof convert, all events", &work, || {
        run(Command::new(env!("CARGO_BIN_EXE_otlpprof")).args(["convert", path, "-o"]).arg(&out));
    })];
    if let Ok(jar) = std::env::var("JFR_CONVERTER") {
        let (java, out) = (java.clone(), out.clone());
        contenders.push(Contender::new("jfrconv -o otlp, execution samples", &work, move || {
            run(Command::new(&java).args(["-jar", &jar, "-o", "otlp", "--threads", path]).arg(&out));
        }));
    }
    compare("processes, cold", TURNS, contenders);
    let _ = std::fs::remove_file(&out);
    if let Ok(classes) = std::env::var("CLASSES") {
        println!("the JDK's RecordingFile, all events and their frames, in one JVM:");
        let mut reader = Command::new(&java);
        reader.args(["-Xmx2g", "-cp", &classes, "ReadRecording", path, JDK_PASSES]);
        assert!(reader.status().expect("java").success(), "ReadRecording");
    }
}

fn run(command: &mut Command) {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("a program");
    assert!(status.success(), "{command:?}: {status}");
}
