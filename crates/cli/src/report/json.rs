//! A report as one JSON document: values in the unit of the measure, without rounding. docs/reports.md
//! describes the document.

use std::io::{self, Write};

use otlpprof_report::attribute_sums::AttributeSum;
use otlpprof_report::call_tree::CallTree;
use otlpprof_report::code_kind::CodeKind;
use otlpprof_report::collect::{Collected, SelfValues, total};
use otlpprof_report::frame_table::{FrameEntry, FrameId, FrameTable};
use otlpprof_report::function_sums::{FunctionSum, function_sums, sorted};
use otlpprof_report::measure::Measure;
use otlpprof_report::sample_reader::SampleReader;
use regex::Regex;
use serde_json::{Map, Value, json};

use super::args::Args;
use super::calls::Call;
use super::diff::{Changes, DiffOptions};
use super::groups::by_total;
use super::head::{Covered, Head};
use super::kinds;
use super::labels::Shown;
use super::table::kind_name;
use super::{peek, processes, waits};
use crate::terminal;

/// Writes the report that the options request.
pub(super) fn print(
    args: &Args,
    head: Head<'_>,
    reader: &SampleReader<'_>,
    collected: &Collected<'_>,
    own: &SelfValues,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut document = self::head(head);
    document.insert("waits".into(), head.waits.map(|waits| waits::json(waits, args.most())).into());
    match args.group_key() {
        Some(key) => {
            let groups = by_total(collected).into_iter().map(|(name, own)| {
                let mut group = Map::new();
                group.insert("value".into(), name.into());
                group.insert("total".into(), total(&own).into());
                add_stacks(&mut group, args, head, reader, &own);
                Value::from(group)
            });
            let groups: Value = groups.collect();
            document.insert("by".into(), key.into());
            document.insert("groups".into(), groups);
        }
        None => add_stacks(&mut document, args, head, reader, own),
    }
    terminal::write_json(&document, out)
}

/// Adds stacks as callers and callees, as a tree or as a table.
fn add_stacks(
    to: &mut Map<String, Value>,
    args: &Args,
    head: Head<'_>,
    reader: &SampleReader<'_>,
    own: &SelfValues,
) {
    let (tree, frames) = (&reader.tree, &reader.frames);
    if let Some(matching) = &args.peek {
        to.insert("functions".into(), functions(args, tree, frames, own, matching));
    } else if args.tree {
        let calls = args.calls(tree, own, head.whole);
        to.insert("folded".into(), calls.folded.into());
        to.insert("elided".into(), calls.elided.into());
        let calls = calls.shown.into_iter().map(|Call { frame, depth, total, own }| {
            let mut call = of_frame(frames.get(frame));
            call.insert(if args.inverted { "entry" } else { "self" }.into(), own.into());
            call.insert("total".into(), total.into());
            call.insert("depth".into(), depth.into());
            Value::from(call)
        });
        to.insert("calls".into(), calls.collect());
    } else {
        to.insert("rows".into(), rows(args, tree, frames, own));
    }
}

/// The functions that match, with their callers and callees.
fn functions(args: &Args, tree: &CallTree, frames: &FrameTable, own: &SelfValues, matching: &Regex) -> Value {
    let found = peek::neighbours(tree, frames, own, matching, args.sort_by());
    let calls = |calls: Vec<(FrameId, i64)>| -> Value {
        let calls = calls.into_iter().map(|(frame, value)| {
            let mut call = of_frame(frames.get(frame));
            call.insert("total".into(), value.into());
            Value::from(call)
        });
        calls.collect()
    };
    let functions = found.iter().take(args.most()).map(|(frame, of)| {
        let mut function = of_sum(frames.get(*frame), of.sum);
        function.insert("callers".into(), calls(of.callers()));
        function.insert("callees".into(), calls(of.callees()));
        Value::from(function)
    });
    functions.collect()
}

/// Writes attributes with the sums of their values.
pub(super) fn print_labels(
    head: Head<'_>,
    labels: &[AttributeSum],
    most: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let labels = labels.iter().map(|label| {
        let Shown { values, others } = Shown::of(label, most);
        let values = values.iter().map(|(value, total)| json!({ "value": value, "total": total }));
        json!({
            "key": label.key, "of": label.place.name(), "total": label.total,
            "values": values.collect::<Value>(),
            "others": { "count": others.values, "isLeast": others.is_least, "total": others.total },
        })
    });
    let mut document = self::head(head);
    document.insert("waits".into(), Value::Null);
    document.insert("labels".into(), labels.collect());
    terminal::write_json(&document, out)
}

/// The measure of a comparison, and lines about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChangesHead<'h> {
    pub(super) measure: &'h Measure,
    /// The conditions of the selection in words.
    pub(super) conditions: &'h [String],
    /// Lines about contents that only one of the compared sides has.
    pub(super) notes: &'h [String],
}

/// Writes a comparison.
pub(super) fn print_changes(
    head: ChangesHead<'_>,
    changes: &Changes,
    frames: &FrameTable,
    options: DiffOptions<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let ChangesHead { measure, conditions, notes } = head;
    let side = |side: usize| {
        json!({
            "total": changes.wholes[side], "totalOfAll": changes.totals_of_all[side],
            "profiledNano": changes.profiled_ns[side], "idleLeftOut": changes.idle[side],
        })
    };
    let rows = changes.functions.iter().take(options.most).map(|&(frame, sums)| {
        let mut row = of_frame(frames.get(frame));
        for (name, sum) in ["base", "new"].into_iter().zip(sums) {
            row.insert(name.into(), json!({ "self": sum.own, "total": sum.total }));
        }
        Value::from(row)
    });
    let document = json!({
        "type": measure.name, "unit": options.unit, "comparison": options.comparison.name(),
        "base": side(0), "new": side(1), "selection": conditions, "notes": notes,
        "rows": rows.collect::<Value>(),
    });
    terminal::write_json(&document, out)
}

fn head(head: Head<'_>) -> Map<String, Value> {
    let Head { survey, covered, measure, unit, whole, selected, idle, kinds, .. } = head;
    let Covered { resources, start_ns, profiled_ns } = covered;
    let others = survey.measures.keys().filter(|other| *other != measure).map(|other| &*other.name);
    let mut document = Map::new();
    let mut add = |name: &str, value: Value| drop(document.insert(name.to_owned(), value));
    add("type", json!(measure.name));
    add("unit", json!(unit));
    add("total", json!(whole));
    add("services", json!(resources.services));
    processes::add_json(resources, &mut add);
    add("fromUnixNano", json!(start_ns));
    add("profiledNano", json!(profiled_ns));
    add("otherTypes", others.collect());
    let (conditions, of) = selected.map_or((&[][..], whole), |selected| (selected.conditions, selected.of));
    add("selection", json!(conditions));
    add("totalOfAll", json!(of));
    add("idleLeftOut", json!(idle));
    let kinds = kinds.map(|kinds| {
        let sums = CodeKind::ALL.map(|kind| (kinds::key(kind).to_owned(), json!(kinds.get(kind))));
        sums.into_iter().collect::<Map<_, _>>()
    });
    add("kinds", json!(kinds));
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
