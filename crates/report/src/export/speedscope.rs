//! The file format of speedscope: a "sampled" profile for each measure and thread, frames shared.
//!
//! Source: `file-format-schema.json` in speedscope's package. Samples are in the order of their times; a
//! sample's width is its value. Samples of one stack in a row are one sample.

use std::io::{self, Write};

use otlpprof_model::attribute_keys;
use serde_json::json;

use super::thread_samples::{KindSamples, Thread, ThreadSample, ThreadSamples};
use crate::call_tree::CallTree;
use crate::frame_table::{FrameEntry, FrameTable};
use crate::measure::Weight;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";
/// Units of the format that measures have.
const UNITS: [&str; 5] = ["nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"];

/// Writes the file. `title` is its name.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(
    tree: &CallTree,
    frames: &FrameTable,
    mut samples: ThreadSamples,
    title: &str,
    weight: Weight,
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(out, "{{\"$schema\":{},\"exporter\":", json!(SCHEMA))?;
    write!(out, "{},", json!(concat!("otlpprof ", env!("CARGO_PKG_VERSION"))))?;
    write!(out, "\"name\":{},\"activeProfileIndex\":0,\"shared\":{{\"frames\":[", json!(title))?;
    for (at, entry) in frames.all().iter().enumerate() {
        write!(out, "{}{}", separator(at), frame(entry))?;
    }
    write!(out, "]}},\"profiles\":[")?;
    let kinds = samples.take_kinds();
    let has_kinds = kinds.len() > 1;
    let mut at = 0;
    for KindSamples { measure, threads } in &kinds {
        for (thread, of_thread) in threads {
            let name = thread_name(&samples, &samples.threads()[*thread]);
            let name = if has_kinds { format!("{}: {name}", measure.name) } else { name };
            write!(out, "{}", separator(at))?;
            write_profile(tree, &name, weight.unit(measure), of_thread, out)?;
            at += 1;
        }
    }
    writeln!(out, "]}}")
}

fn write_profile(
    tree: &CallTree,
    name: &str,
    unit: &str,
    samples: &[ThreadSample],
    out: &mut dyn Write,
) -> io::Result<()> {
    let unit = if UNITS.contains(&unit) { unit } else { "none" };
    let end = sum(samples);
    write!(out, "{{\"type\":\"sampled\",\"name\":{},\"unit\":{},", json!(name), json!(unit))?;
    write!(out, "\"startValue\":0,\"endValue\":{end},\"samples\":[")?;
    // Samples of one stack in a row become one: each would repeat all of its frames.
    let rows = || samples.chunk_by(|one, next| one.node == next.node);
    let mut stack = Vec::new();
    for (at, row) in rows().enumerate() {
        stack.clear();
        stack.extend(tree.stack(row[0].node));
        write!(out, "{}[", separator(at))?;
        for (at, frame) in stack.iter().rev().enumerate() {
            write!(out, "{}{frame}", separator(at))?;
        }
        write!(out, "]")?;
    }
    write!(out, "],\"weights\":[")?;
    for (at, row) in rows().enumerate() {
        write!(out, "{}{}", separator(at), sum(row))?;
    }
    write!(out, "]}}")
}

/// The sum of the samples' values.
fn sum(samples: &[ThreadSample]) -> i64 {
    samples.iter().fold(0, |sum, sample| sum.saturating_add(sample.value))
}

/// The separator before an element of a list.
fn separator(at: usize) -> &'static str {
    if at == 0 { "" } else { "," }
}

fn frame(entry: &FrameEntry) -> serde_json::Value {
    let mut frame = json!({ "name": entry.name });
    if !entry.file.is_empty() {
        frame["file"] = json!(entry.file);
    }
    if entry.line != 0 {
        frame["line"] = json!(entry.line);
    }
    frame
}

/// The thread's name, with its process if there are several.
fn thread_name(samples: &ThreadSamples, thread: &Thread) -> String {
    let name = thread.label();
    let pid = samples.processes.attribute(thread.process, attribute_keys::PROCESS_PID);
    if samples.processes.len() > 1 && !pid.is_empty() { format!("{name} (pid {pid})") } else { name }
}
