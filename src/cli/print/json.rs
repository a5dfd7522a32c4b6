//! Messages and sums as one JSON document, with all indices resolved. It is not OTLP/JSON.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::labels::span_json;
use super::summary::{ProfileSummary, SampleView};
use super::top::{SHOWN_LABELS, TopStack, Tops};
use super::{Args, value};
use crate::otlp::Form;
use crate::otlp::frames::Frame;
use crate::otlp::lookup::Lookup;
use crate::otlp::read::Message;
use crate::otlp::wire::{self, KeyValue, Profile};

/// Messages and sums of all files.
pub(super) fn document(messages: Vec<Value>, tops: &Tops, args: &Args) -> Value {
    let kinds = tops.kinds().map(|(kind, top)| {
        let stacks = top.stacks(args.top_stacks()).into_iter();
        let frames = top.frames(args.top_frames.unwrap_or(0)).into_iter();
        json!({
            "kind": kind,
            "total": number(top.total),
            "stackCount": top.stack_count(),
            "stacks": stacks.map(|stack| self::stack(&stack, tops)).collect::<Value>(),
            "frames": frames
                .map(|(frame, sums)| json!({ "frame": frame, "self": number(sums.own), "total": number(sums.total) }))
                .collect::<Value>(),
        })
    });
    json!({ "messages": messages, "top": kinds.collect::<Value>() })
}

/// A stack with its sum, and what most of its samples are labelled with.
fn stack(stack: &TopStack<'_>, tops: &Tops) -> Value {
    let labels = stack.labels(SHOWN_LABELS).into_iter().map(|(set, sum)| {
        let set = tops.labels(set);
        json!({ "total": number(sum), "attributes": set.attributes, "link": set.link })
    });
    json!({
        "total": number(stack.total),
        "frames": stack.frames,
        "labelSetCount": stack.label_set_count(),
        "labels": labels.collect::<Value>(),
    })
}

/// One message.
pub(super) fn message(path: &Path, message: &Message, args: &Args) -> Value {
    let tables = Lookup::new(&message.data);
    let resources = message.data.resource_profiles.iter().map(|resource| {
        let scopes = resource.scope_profiles.iter().map(|scope| {
            let profiles = scope.profiles.iter().map(|one| profile(tables, one, args.all));
            json!({
                "name": scope.scope.as_ref().map(|scope| &scope.name),
                "version": scope.scope.as_ref().map(|scope| &scope.version),
                "attributes": inline(tables, scope.scope.iter().flat_map(|scope| &scope.attributes)),
                "profiles": profiles.collect::<Value>(),
            })
        });
        json!({
            "attributes": inline(tables, resource.resource.iter().flat_map(|resource| &resource.attributes)),
            "scopes": scopes.collect::<Value>(),
        })
    });
    let mut document = json!({
        "file": path.display().to_string(),
        "index": message.index,
        "form": match message.form {
            Form::Plain => "protobuf",
            Form::LengthPrefixed => "length-prefixed",
            Form::Json => "json",
        },
        "offset": message.offset,
        "size": message.size,
        "resources": resources.collect::<Value>(),
    });
    if args.raw {
        document["dictionary"] = dictionary(tables);
    }
    document
}

/// A sum. Those beyond 64 bits are no JSON integers to most readers.
fn number(sum: i128) -> Value {
    i64::try_from(sum).map_or_else(|_| json!(sum.to_string()), Value::from)
}

fn inline<'a>(tables: Lookup<'a>, attributes: impl Iterator<Item = &'a KeyValue>) -> Value {
    let entry = |attribute: &'a KeyValue| {
        let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
        (tables.key(attribute), value)
    };
    map(tables, attributes.map(entry))
}

fn map<'a>(
    tables: Lookup<'a>,
    attributes: impl Iterator<Item = (&'a str, Option<&'a wire::Value>)>,
) -> Value {
    let entries = attributes.map(|(key, value)| (key.to_owned(), value::to_json(tables, value)));
    entries.collect::<Map<_, _>>().into()
}

fn profile(tables: Lookup<'_>, profile: &Profile, all: bool) -> Value {
    let summary = ProfileSummary::new(tables, profile);
    let mut document = json!({
        "sampleType": { "type": summary.sample_type.0, "unit": summary.sample_type.1 },
        "periodType": { "type": summary.period_type.0, "unit": summary.period_type.1 },
        "period": profile.period,
        "timeUnixNano": profile.time_unix_nano,
        "durationNano": profile.duration_nano,
        "profileId": value::hexadecimal(&profile.profile_id),
        "droppedAttributes": profile.dropped_attributes_count,
        "originalPayloadFormat": profile.original_payload_format,
        "originalPayloadBytes": profile.original_payload.len(),
        "sampleCount": profile.samples.len(),
        "total": number(summary.total),
        "attributes": map(tables, summary.attributes.iter().copied()),
    });
    if all {
        let samples = profile.samples.iter().map(|one| sample(tables, &SampleView::new(tables, one)));
        document["samples"] = samples.collect();
    }
    document
}

fn sample(tables: Lookup<'_>, view: &SampleView<'_>) -> Value {
    json!({
        "values": view.sample.values,
        "timestampsUnixNano": view.sample.timestamps_unix_nano,
        "attributes": map(tables, view.attributes.iter().copied()),
        "link": span_json(view.link),
        "frames": view.frames.iter().map(frame).collect::<Value>(),
    })
}

fn frame(frame: &Frame<'_>) -> Value {
    json!({ "name": frame.text, "type": frame.frame_type, "file": frame.file, "line": frame.line })
}

/// The tables, their indices as they are.
fn dictionary(tables: Lookup<'_>) -> Value {
    let dictionary = tables.dictionary;
    let mappings = dictionary.mapping_table.iter().map(|mapping| {
        json!({
            "memoryStart": mapping.memory_start, "memoryLimit": mapping.memory_limit,
            "fileOffset": mapping.file_offset, "filename": mapping.filename_strindex,
            "attributes": mapping.attribute_indices,
        })
    });
    let locations = dictionary.location_table.iter().map(|location| {
        let line = |line: &wire::Line| {
            json!({ "function": line.function_index, "line": line.line, "column": line.column })
        };
        json!({
            "mapping": location.mapping_index, "address": location.address,
            "lines": location.lines.iter().map(line).collect::<Value>(),
            "attributes": location.attribute_indices,
        })
    });
    let functions = dictionary.function_table.iter().map(|function| {
        json!({
            "name": function.name_strindex, "systemName": function.system_name_strindex,
            "filename": function.filename_strindex, "startLine": function.start_line,
        })
    });
    let links = dictionary.link_table.iter().map(|link| span_json(Some(link)));
    let attributes = dictionary.attribute_table.iter().map(|attribute| {
        let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
        json!({
            "key": attribute.key_strindex, "unit": attribute.unit_strindex,
            "value": value::to_json(tables, value),
        })
    });
    let stacks = dictionary.stack_table.iter().map(|stack| &stack.location_indices);
    json!({
        "mappings": mappings.collect::<Value>(),
        "locations": locations.collect::<Value>(),
        "functions": functions.collect::<Value>(),
        "links": links.collect::<Value>(),
        "strings": dictionary.string_table,
        "attributes": attributes.collect::<Value>(),
        "stacks": stacks.map(|stack| json!(stack)).collect::<Value>(),
    })
}
