//! A report as one JSON document: values in the unit of the measure, without rounding. docs/reports.md
//! describes the document.

use std::cmp::Reverse;
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::diff::{Changes, DiffOptions};
use super::head::Head;
use super::table::kind_name;
use super::tree::{Call, calls};
use super::{Args, peek};
use crate::cli::terminal;
use crate::report::call_tree::CallTree;
use crate::report::collect::{Collected, SelfValues, total};
use crate::report::frame_table::{FrameEntry, FrameId, FrameTable};
use crate::report::function_sums::{FunctionSum, function_sums, sorted};
use crate::report::measure::Measure;
use crate::report::sample_reader::SampleReader;

/// Writes the report that the options request.
pub(super) fn print(
    args: &Args,
    head: Head<'_>,
    reader: &SampleReader<'_>,
    collected: &Collected<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (tree, frames, own) = (&reader.tree, &reader.frames, collected.merged());
    let mut document = self::head(head);
    let mut add = |name: &str, value: Value| document.insert(name.to_owned(), value);
    if let Some(matching) = &args.peek {
        let found = peek::neighbours(tree, frames, &own, matching);
        let calls = |calls: Vec<(FrameId, i64)>| -> Value {
            let calls = calls.into_iter().map(|(frame, value)| {
                let mut call = of_frame(frames.get(frame));
                call.insert("total".into(), value.into());
                Value::from(call)
            });
            calls.collect()
        };
        let functions = found.iter().map(|(frame, of)| {
            let mut function = of_sum(frames.get(*frame), of.sum);
            function.insert("callers".into(), calls(of.callers()));
            function.insert("callees".into(), calls(of.callees()));
            Value::from(function)
        });
        add("functions", functions.collect());
    } else if args.tree {
        let calls = calls(tree, &own, args.least).into_iter().map(|Call { node, depth, total, own }| {
            let mut call = of_sum(frames.get(tree.frame(node)), FunctionSum { own, total });
            call.insert("depth".into(), depth.into());
            Value::from(call)
        });
        add("calls", calls.collect());
    } else if let Some(key) = args.group_key() {
        let mut groups: Vec<_> = collected.groups().into_iter().collect();
        groups.sort_by_cached_key(|(name, own)| (Reverse(total(own)), *name));
        let groups = groups.iter().map(|(name, own)| {
            json!({ "value": name, "total": total(own), "rows": rows(args, tree, frames, own) })
        });
        add("by", key.into());
        add("groups", groups.collect());
    } else {
        add("rows", rows(args, tree, frames, &own));
    }
    terminal::write_json(&document, out)
}

/// Writes a comparison.
pub(super) fn print_changes(
    measure: &Measure,
    changes: &Changes,
    frames: &FrameTable,
    options: DiffOptions<'_>,
    notes: &[String],
    out: &mut dyn Write,
) -> io::Result<()> {
    let side =
        |side: usize| json!({ "total": changes.wholes[side], "profiledNano": changes.profiled_ns[side] });
    let rows = changes.functions.iter().take(options.most).map(|&(frame, sums)| {
        let mut row = of_frame(frames.get(frame));
        for (name, sum) in ["base", "new"].into_iter().zip(sums) {
            row.insert(name.into(), json!({ "self": sum.own, "total": sum.total }));
        }
        Value::from(row)
    });
    let document = json!({
        "type": measure.name, "unit": options.unit, "comparison": options.comparison.name(),
        "base": side(0), "new": side(1), "notes": notes, "rows": rows.collect::<Value>(),
    });
    terminal::write_json(&document, out)
}

fn head(head: Head<'_>) -> Map<String, Value> {
    let Head { survey, measure, unit, whole, profiled_ns, .. } = head;
    let others = survey.measures.keys().filter(|other| *other != measure).map(|other| &*other.name);
    let mut document = Map::new();
    let mut add = |name: &str, value: Value| document.insert(name.to_owned(), value);
    add("type", json!(measure.name));
    add("unit", json!(unit));
    add("total", json!(whole));
    add("services", json!(survey.services));
    add("fromUnixNano", json!(survey.times.map(|(first, _)| first)));
    add("profiledNano", json!(profiled_ns));
    add("otherTypes", others.collect());
    document
}

/// The rows of a table.
fn rows(args: &Args, tree: &CallTree, frames: &FrameTable, own: &SelfValues) -> Value {
    let sums = function_sums(tree, frames.len(), own.iter().map(|(&node, &value)| (node, value)));
    let sorted = sorted(&sums, args.sort_by());
    let rows = sorted.into_iter().take(args.most());
    rows.map(|(frame, sum)| Value::from(of_sum(frames.get(frame), sum))).collect()
}

fn of_sum(entry: &FrameEntry, sum: FunctionSum) -> Map<String, Value> {
    let mut row = of_frame(entry);
    row.insert("self".into(), sum.own.into());
    row.insert("total".into(), sum.total.into());
    row
}

fn of_frame(entry: &FrameEntry) -> Map<String, Value> {
    let frame = [
        ("function", json!(entry.name)),
        ("file", json!(entry.file)),
        ("line", json!(entry.line)),
        ("code", json!(kind_name(entry.kind))),
    ];
    frame.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}
