//! What we do in the contest, in a process of its own as the others do it: once for each line of standard input, each
//! answered with `EVENTS STACKS FRAMES CHECK` (`Passes.java`).

use std::io::{BufRead as _, Write as _};

use otlpprof::convert::{ConvertOptions, JfrToOtlp};
use otlpprof::jfr::numbers::{Numbers, element_type};
use otlpprof::jfr::recording::Chunks;
use otlpprof::jfr::values::Value;
use otlpprof::otlp::{EncodeOptions, encode};

/// The argument that has this program serve: `SERVE read FILE`, or `SERVE convert FILE OUT [EVENT...]`.
pub(crate) const SERVE: &str = "--serve";

/// Serves.
pub(crate) fn serve(work: &[String]) {
    for line in std::io::stdin().lock().lines() {
        line.expect("a line");
        let [events, stacks, frames, check] = match work {
            [what, path] if what == "read" => read(path),
            [what, path, out, only @ ..] if what == "convert" => {
                convert(path, out, only);
                [0; 4]
            }
            _ => panic!("{work:?}"),
        };
        let mut to = std::io::stdout().lock();
        writeln!(to, "{events} {stacks} {frames} {check}").and_then(|()| to.flush()).expect("who asked");
    }
}

/// Converts a file to a file; with events named, these alone.
fn convert(path: &str, out: &str, only: &[String]) {
    let only = (!only.is_empty()).then(|| only.to_vec());
    let mut converter = JfrToOtlp::new(ConvertOptions { only, ..Default::default() });
    converter.add_file(path).expect("a recording that is whole");
    std::fs::write(out, encode(&converter.convert(), &EncodeOptions::default())).expect("the result");
}

/// Reads every field of every event, and every frame of each event's stack. A stack is decoded once for each chunk, as the
/// others do it.
fn read(path: &str) -> [i64; 4] {
    let bytes = std::fs::read(path).expect("the recording");
    let [mut events, mut stacks, mut frames, mut check] = [0; 4];
    for chunk in Chunks::new(&bytes) {
        let chunk = chunk.expect("a chunk");
        let chunk = chunk.contents();
        // By the stack's position: where its lines are in `lines`.
        let mut known: Vec<Option<(usize, usize)>> = Vec::new();
        let mut lines: Vec<i64> = Vec::new();
        let mut numbers: Option<Numbers> = None;
        for event in chunk.events() {
            let event = event.expect("an event");
            events += 1;
            for field in event.values().fields() {
                let (field, value) = field.expect("a field");
                let Value::Constant(constant) = std::hint::black_box(value) else { continue };
                if &*field.name != "stackTrace" {
                    continue;
                }
                let Some(position) = chunk.constant_position(constant) else { continue };
                if known.len() <= position {
                    known.resize(chunk.constant_count(constant.of).max(position + 1), None);
                }
                let (begin, end) = *known[position].get_or_insert_with(|| {
                    let begin = lines.len();
                    let trace = value.as_struct(chunk).and_then(|trace| trace.get("frames"));
                    if let Some(Value::Array(array)) = trace
                        && let Some(of) = element_type(&Value::Array(array))
                    {
                        let numbers = numbers.get_or_insert_with(|| {
                            Numbers::new(chunk, of, &["method", "lineNumber", "bytecodeIndex", "type"])
                        });
                        let read =
                            numbers.each::<4>(&array, |frame| lines.push(std::hint::black_box(frame)[1]));
                        read.expect("frames");
                    }
                    (begin, lines.len())
                });
                stacks += 1;
                frames += (end - begin) as i64;
                check += lines[begin..end].iter().sum::<i64>();
            }
        }
    }
    [events, stacks, frames, check]
}
