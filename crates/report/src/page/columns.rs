//! The data of a page as columns of bytes: header, names, nodes in pre-order, rows. The page's decoder is
//! `page/src/profile.js`. page/README.md describes the form.

use std::cmp::Reverse;
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::kinds;
use super::rows::{PageRows, Row};
use crate::call_tree::{CallTree, ROOT, RunOfNodes};
use crate::code_kind::CodeKind;
use crate::frame_code::FrameCodes;
use crate::frame_table::{FrameKind, FrameTable};
use crate::measure::{Measure, Weight};
use crate::sides::Comparison;

const MAGIC: &[u8] = b"OTPP";
const VERSION: u8 = 1;

/// The texts of a page.
#[derive(Clone, Debug, Default)]
pub struct PageTexts {
    /// The title.
    pub title: String,
    /// The processes and the time in words; empty if unknown.
    pub about: String,
    /// The filters that were applied; empty for none.
    pub selection: String,
    /// Notes on samples that were merged or left out.
    pub notes: Vec<String>,
    /// The names of the base and the new side of a comparison.
    pub sides: Option<[String; 2]>,
    /// The way in which the page compares the sides at first.
    pub comparison: Comparison,
    /// Whether the thread's name is the root of each stack at first.
    pub by_thread: bool,
    /// The names of the kinds of code.
    pub kinds: [&'static str; CodeKind::ALL.len()],
}

/// Columns by name, in the order of writing.
#[derive(Default)]
struct Sections {
    named: Vec<(String, Vec<u8>)>,
}

impl Sections {
    /// Adds a column. A column of zeros alone is left out.
    fn add(&mut self, name: impl Into<String>, bytes: Vec<u8>) {
        if bytes.iter().any(|&byte| byte != 0) {
            self.named.push((name.into(), bytes));
        }
    }

    fn places(&self) -> Value {
        let mut offset = 0;
        let mut places = Map::new();
        for (name, bytes) in &self.named {
            places.insert(name.clone(), json!([offset, bytes.len()]));
            offset += bytes.len();
        }
        places.into()
    }
}

/// Writes the data of a page, uncompressed.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(
    tree: &CallTree,
    frames: &FrameTable,
    rows: &mut PageRows,
    texts: &PageTexts,
    out: &mut dyn Write,
) -> io::Result<()> {
    let measures = rows.take();
    let mut sections = Sections::default();
    let numbers = by_frequency(tree, frames.len());
    add_frames(&mut sections, frames, &numbers);
    let mut frame_numbers = vec![0_u32; frames.len()];
    for (number, &frame) in (0..).zip(&numbers) {
        frame_numbers[frame as usize] = number;
    }
    let (places, levels) = add_nodes(&mut sections, tree, &frame_numbers);
    let keys: Vec<_> =
        (0..rows.labels().keys().len()).filter(|&key| !rows.labels().keys()[key].is_dropped).collect();
    let mut sets = Vec::new();
    for set in 0..rows.labels().set_count() {
        keys.iter().for_each(|&key| push_varint(&mut sets, rows.labels().value(set, key).into()));
    }
    sections.add("label_sets", sets);
    let roles: Vec<_> = (0..rows.labels().set_count()).map(|set| rows.labels().role(set)).collect();
    let FrameCodes { codes, has_jvm } = FrameCodes::of(frames);
    let has_kinds = has_jvm || roles.iter().any(|role| role.is_of_jvm());
    if has_kinds {
        sections.add("frame_codes", numbers.iter().map(|&frame| codes[frame as usize] as u8).collect());
        sections.add("set_roles", roles.iter().map(|&role| role as u8).collect());
    }
    for (number, (_, of_measure)) in measures.iter().enumerate() {
        add_rows(&mut sections, number, of_measure, &places, texts.sides.is_some());
    }
    let mut header = header(&measures, rows, &keys, frames.len(), tree.len(), texts, &sections);
    header["levels"] = json!(levels);
    if texts.by_thread {
        header["byThread"] = json!(true);
    }
    if has_kinds {
        header["kinds"] = kinds::rules(&texts.kinds);
    }
    let header = header.to_string();
    out.write_all(MAGIC)?;
    out.write_all(&[VERSION])?;
    out.write_all(&u32::try_from(header.len()).map_err(io::Error::other)?.to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    sections.named.iter().try_for_each(|(_, bytes)| out.write_all(bytes))
}

fn header(
    measures: &[(Measure, Vec<Row>)],
    rows: &PageRows,
    keys: &[usize],
    frames: usize,
    nodes: usize,
    texts: &PageTexts,
    sections: &Sections,
) -> Value {
    let seconds = |side| {
        let ns = rows.time(side).total_ns();
        if ns == 0 { Value::Null } else { json!(ns as f64 / 1e9) }
    };
    let types = measures.iter().map(|(measure, _)| {
        let label = match rows.weight() {
            Weight::Amount => measure.title().to_owned(),
            Weight::Samples => format!("{}, samples", measure.title()),
        };
        json!({
            "name": measure.name, "unit": rows.weight().unit(measure), "label": label,
            "snapshot": measure.is_snapshot(),
        })
    });
    let labels = keys.iter().map(|&key| {
        let key = &rows.labels().keys()[key];
        json!({ "key": key.name, "values": key.values })
    });
    let times = rows.steps().map_or(Value::Null, |steps| {
        json!({
            "startUnixMs": steps.start_ns / 1_000_000, "stepMs": steps.step_ns as f64 / 1e6,
            "count": steps.count,
        })
    });
    let mut header = json!({
        "title": texts.title,
        "about": texts.about,
        "producer": concat!("otlpprof ", env!("CARGO_PKG_VERSION")),
        "types": types.collect::<Value>(),
        "labels": labels.collect::<Value>(),
        "labelSets": rows.labels().set_count(),
        "times": times,
        "frames": frames,
        "nodes": nodes,
        "rows": measures.iter().map(|(_, rows)| rows.len()).collect::<Value>(),
        "sides": 1,
        "notes": texts.notes,
        "selection": texts.selection,
        "sections": sections.places(),
    });
    if let Some(names) = &texts.sides {
        header["sides"] = json!(2);
        header["sideNames"] = json!(names);
        header["sideSeconds"] = json!([seconds(0), seconds(1)]);
        header["comparison"] = json!(texts.comparison.name());
    }
    header
}

/// Adds the nodes in pre-order, each with the number of its frame. Returns the place of each node, and the
/// number of levels.
fn add_nodes(sections: &mut Sections, tree: &CallTree, frame_numbers: &[u32]) -> (Vec<u32>, u32) {
    let count = tree.len();
    // The root, which has no frame, is the first node.
    let (mut places, mut pops, mut levels) = (vec![0; count], Vec::with_capacity(count), 1);
    pops.push(0);
    let (mut low, mut high) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let (mut place, mut before) = (1_u32, 0);
    for (RunOfNodes { first, frames, .. }, level) in tree.runs_in_pre_order() {
        push_varint(&mut pops, u64::from(before + 1 - level));
        // Each of the other nodes of a run is the child of the node before.
        pops.resize(pops.len() + frames.len() - 1, 0);
        for (at, &frame) in places[first as usize..].iter_mut().zip(frames) {
            *at = place;
            place += 1;
            // Low and high bytes apart are a tenth smaller when compressed.
            let number = frame_numbers[frame as usize];
            low.push(number as u8);
            push_varint(&mut high, u64::from(number >> 8));
        }
        // SANITY: a run is a part of the tree, which has fewer than 2^32 nodes.
        before = level + frames.len() as u32 - 1;
        levels = levels.max(before + 1);
    }
    sections.add("node_pops", pops);
    sections.add("node_frames_low", low);
    sections.add("node_frames_high", high);
    (places, levels)
}

/// The frames by the number of their nodes, the most frequent first, so that frequent numbers are short.
fn by_frequency(tree: &CallTree, frames: usize) -> Vec<u32> {
    let mut counts = vec![0_u32; frames];
    for &frame in tree.runs().flat_map(|run| run.frames) {
        counts[frame as usize] += 1;
    }
    let mut numbers: Vec<u32> = (0..frames as u32).collect();
    numbers.sort_by_key(|&frame| Reverse(counts[frame as usize]));
    numbers
}

fn add_frames(sections: &mut Sections, frames: &FrameTable, numbers: &[u32]) {
    let (mut name_lengths, mut names, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
    let (mut details, mut detail_lengths, mut detail_texts) = (Vec::new(), Vec::new(), Vec::new());
    let mut known = std::collections::HashMap::new();
    for &frame in numbers {
        let entry = frames.get(frame);
        push_varint(&mut name_lengths, entry.name.len() as u64);
        names.extend_from_slice(entry.name.as_bytes());
        kinds.push(match entry.kind {
            FrameKind::Java => 0,
            FrameKind::Native => 1,
            FrameKind::Kernel => 2,
            FrameKind::Stub => 3,
            FrameKind::Marker => 4,
            FrameKind::Other(_) => 5,
        });
        let detail = entry.detail();
        let number = match detail.is_empty() {
            true => 0,
            false => {
                let next = known.len() as u64 + 1;
                *known.entry(detail).or_insert_with_key(|detail| {
                    push_varint(&mut detail_lengths, detail.len() as u64);
                    detail_texts.extend_from_slice(detail.as_bytes());
                    next
                })
            }
        };
        push_varint(&mut details, number);
    }
    sections.add("frame_name_lengths", name_lengths);
    sections.add("frame_names", names);
    sections.add("frame_kinds", kinds);
    sections.add("frame_details", details);
    sections.add("detail_lengths", detail_lengths);
    sections.add("details", detail_texts);
}

fn add_rows(sections: &mut Sections, number: usize, rows: &[Row], places: &[u32], has_sides: bool) {
    let mut rows: Vec<_> = rows.iter().map(|row| (places[row.key.node as usize], row)).collect();
    rows.sort_unstable_by_key(|(place, row)| {
        (*place, row.key.labels, row.key.step, row.key.side, row.series)
    });
    let mut columns: [Vec<u8>; 6] = Default::default();
    let [nodes, values, sets, times, sides, series] = &mut columns;
    let mut before = ROOT;
    for (place, row) in rows {
        push_varint(nodes, u64::from(place - before));
        before = place;
        push_varint(values, u64::try_from(row.value).unwrap_or(0));
        push_varint(sets, row.key.labels.into());
        push_varint(times, row.key.step.into());
        sides.push(if has_sides { row.key.side } else { 0 });
        push_varint(series, row.series.into());
    }
    for (name, bytes) in ["nodes", "values", "sets", "times", "sides", "series"].into_iter().zip(columns) {
        sections.add(format!("rows{number}_{name}"), bytes);
    }
}

/// Appends a number in LEB128.
fn push_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_leb128() {
        let of = |number| {
            let mut bytes = Vec::new();
            push_varint(&mut bytes, number);
            bytes
        };
        assert_eq!(of(0), [0]);
        assert_eq!(of(127), [127]);
        assert_eq!(of(128), [0x80, 1]);
        assert_eq!(of(300), [0xac, 2]);
        assert_eq!(of(u64::MAX).len(), 10);
    }
}
