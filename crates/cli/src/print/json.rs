//! Messages and sums as one JSON document, with all indices resolved. The document is not OTLP/JSON. It is
//! written while it is made, so that no more than one sample of it is in memory.

use std::cell::Cell;
use std::io::Write;

use otlpprof_otlp::Form;
use otlpprof_otlp::encoded::{EncodedMessage, EncodedTables};
use otlpprof_otlp::encoded_profiles::{EncodedProfile, EncodedResource, EncodedScope};
use otlpprof_otlp::frames::Frame;
use otlpprof_otlp::lookup::DictionaryTables as _;
use otlpprof_otlp::wire::{self, KeyValue};
use otlpprof_report::frame_table::FrameEntry;
use serde_core::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value, json};

use super::super::report::content::Content;
use super::super::report::profile_file::ProfileFile;
use super::super::terminal::JsonWriter;
use super::args::Args;
use super::kind::StackSums;
use super::labels::{SHOWN_LABELS, span_json};
use super::messages::each_message;
use super::summary::{LongStacks, ProfileSummary, SampleView, ShownFrames};
use super::sums::Sums;
use super::value;

/// Prints the messages and sums of all files. The first error of a file that cannot be read any further is
/// put into `broken`.
pub(super) fn print(
    files: &[ProfileFile],
    args: &Args,
    sums: &mut Sums<'_>,
    broken: &mut Option<anyhow::Error>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut json = JsonWriter::new(out);
    json.raw("{\"messages\":[")?;
    let mut is_first = true;
    each_message(files, broken, |file, message| {
        sums.add(message);
        if !std::mem::take(&mut is_first) {
            json.raw(",")?;
        }
        Ok(json.value(&MessageJson { file, message, args })?)
    })?;
    sums.finish();
    json.raw("],\"top\":")?;
    json.value(&tops(sums, args))?;
    json.raw("}")?;
    Ok(json.finish()?)
}

/// The sums of each kind of profile.
fn tops(sums: &Sums<'_>, args: &Args) -> Value {
    let kinds = sums.kinds().map(|top| {
        let (stacks, stack_count) = sums.stacks(top, args.json_stacks());
        let frames = sums.functions(top, args.json_frames()).into_iter();
        json!({
            "kind": top.kind,
            "total": number(top.total.values),
            "type": top.measure.name,
            "unit": top.measure.unit,
            "amount": number(top.total.amount),
            "stackCount": stack_count,
            "stacks": stacks.iter().map(|stack| self::stack(stack, sums)).collect::<Value>(),
            "frames": frames
                .map(|(frame, sum)| {
                    json!({
                        "frame": frame,
                        "self": number(sum.own.values), "total": number(sum.total.values),
                        "selfAmount": number(sum.own.amount), "totalAmount": number(sum.total.amount),
                    })
                })
                .collect::<Value>(),
        })
    });
    kinds.collect()
}

/// A stack with its sum and the sets of labels with the highest sums.
fn stack(stack: &StackSums, sums: &Sums<'_>) -> Value {
    let labels = stack.labels.iter().take(SHOWN_LABELS).map(|&(set, sum)| {
        let mut fields = sums.labels(set).fields();
        fields["total"] = number(sum.values);
        fields["amount"] = number(sum.amount);
        fields
    });
    json!({
        "total": number(stack.total.values),
        "amount": number(stack.total.amount),
        "frames": sums.frames(stack.node).map(FrameEntry::to_string).collect::<Value>(),
        "labelSetCount": stack.label_set_count(),
        "labels": labels.collect::<Value>(),
    })
}

/// A list whose elements are made while it is serialised. It can be serialised once.
struct LazyList<I>(Cell<Option<I>>);

impl<I> LazyList<I> {
    fn of(items: I) -> Self {
        Self(Cell::new(Some(items)))
    }
}

impl<I: Iterator<Item: Serialize>> Serialize for LazyList<I> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.take().into_iter().flatten())
    }
}

/// One message.
struct MessageJson<'a> {
    file: &'a ProfileFile,
    message: &'a EncodedMessage,
    args: &'a Args,
}

impl Serialize for MessageJson<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { file, message, args } = *self;
        let tables = message.tables();
        let form = match (file.content, message.form) {
            (Content::Otlp, Form::Plain) => "protobuf",
            (Content::Otlp, Form::LengthPrefixed) => "length-prefixed",
            (Content::Otlp, Form::Json) => "json",
            (Content::Recording, _) => "recording",
            (Content::Pprof, _) => "pprof",
            (Content::Collapsed, _) => "collapsed",
        };
        // A message that was made of another format has no place in the file.
        let offset = (file.content == Content::Otlp).then_some(message.offset);
        let resources = message.resources();
        let resources = resources.map(|resource| ResourceJson { tables, resource, all: args.all });
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("file", &file.input.path.display().to_string())?;
        map.serialize_entry("index", &message.index)?;
        map.serialize_entry("form", form)?;
        map.serialize_entry("offset", &offset)?;
        map.serialize_entry("size", &message.size)?;
        map.serialize_entry("resources", &LazyList::of(resources))?;
        if args.raw {
            map.serialize_entry("dictionary", &DictionaryJson(tables))?;
        }
        map.end()
    }
}

struct ResourceJson<'a> {
    tables: EncodedTables<'a>,
    resource: EncodedResource<'a>,
    all: bool,
}

impl Serialize for ResourceJson<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { tables, resource, all } = *self;
        let scopes = resource.scopes().map(|scope| ScopeJson { tables, scope, all });
        let attributes = resource.resource().unwrap_or_default().attributes;
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("attributes", &inline(tables, &attributes))?;
        map.serialize_entry("scopes", &LazyList::of(scopes))?;
        map.end()
    }
}

struct ScopeJson<'a> {
    tables: EncodedTables<'a>,
    scope: EncodedScope<'a>,
    all: bool,
}

impl Serialize for ScopeJson<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { tables, scope, all } = *self;
        let of_scope = scope.scope();
        let profiles = scope.profiles().map(|profile| ProfileJson { tables, profile, all });
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("name", &of_scope.as_ref().map(|scope| &scope.name))?;
        map.serialize_entry("version", &of_scope.as_ref().map(|scope| &scope.version))?;
        map.serialize_entry("attributes", &inline(tables, &of_scope.unwrap_or_default().attributes))?;
        map.serialize_entry("profiles", &LazyList::of(profiles))?;
        map.end()
    }
}

struct ProfileJson<'a> {
    tables: EncodedTables<'a>,
    profile: EncodedProfile<'a>,
    all: bool,
}

impl Serialize for ProfileJson<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { tables, profile, all } = *self;
        let summary = ProfileSummary::new(tables, profile);
        let header = &summary.header;
        let value_type = |(name, unit)| json!({ "type": name, "unit": unit });
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("sampleType", &value_type(summary.sample_type))?;
        map.serialize_entry("periodType", &value_type(summary.period_type))?;
        map.serialize_entry("period", &header.period)?;
        map.serialize_entry("timeUnixNano", &header.time_unix_nano)?;
        map.serialize_entry("durationNano", &header.duration_nano)?;
        map.serialize_entry("profileId", &value::hexadecimal(&header.profile_id))?;
        map.serialize_entry("droppedAttributes", &header.dropped_attributes_count)?;
        map.serialize_entry("originalPayloadFormat", &header.original_payload_format)?;
        map.serialize_entry("originalPayloadBytes", &profile.payload().len())?;
        map.serialize_entry("sampleCount", &summary.samples)?;
        map.serialize_entry("total", &number(summary.total))?;
        map.serialize_entry("type", &summary.measure.name)?;
        map.serialize_entry("unit", &summary.measure.unit)?;
        map.serialize_entry("amount", &number(summary.amount))?;
        map.serialize_entry("attributes", &Attributes { tables, indices: &header.attribute_indices })?;
        if all {
            let mut shown = LongStacks::new();
            let samples = profile.samples().enumerate().map(|(number, one)| SampleJson {
                tables,
                view: SampleView::new(tables, number, one, &mut shown),
            });
            map.serialize_entry("samples", &LazyList::of(samples))?;
        }
        map.end()
    }
}

struct SampleJson<'a> {
    tables: EncodedTables<'a>,
    view: SampleView<'a>,
}

impl Serialize for SampleJson<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let view = &self.view;
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("values", &view.sample.values)?;
        map.serialize_entry("timestampsUnixNano", &view.sample.timestamps_unix_nano)?;
        map.serialize_entry(
            "attributes",
            &Attributes { tables: self.tables, indices: &view.sample.attribute_indices },
        )?;
        map.serialize_entry("link", &span_json(view.link.as_ref()))?;
        match &view.frames {
            ShownFrames::All(frames) => {
                map.serialize_entry("frames", &LazyList::of(frames.iter().map(frame)))?
            }
            ShownFrames::OfSample(first) => map.serialize_entry("framesOfSample", first)?,
        }
        map.end()
    }
}

/// A sum. A sum beyond 64 bits becomes a string, since most readers do not accept it as a JSON integer.
fn number(sum: i128) -> Value {
    i64::try_from(sum).map_or_else(|_| json!(sum.to_string()), Value::from)
}

fn inline(tables: EncodedTables<'_>, attributes: &[KeyValue]) -> Value {
    let entry = |attribute: &KeyValue| {
        let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
        (tables.key(attribute).to_owned(), value::to_json(tables, value))
    };
    attributes.iter().map(entry).collect::<Map<_, _>>().into()
}

/// Attributes of the table, by key.
struct Attributes<'a> {
    tables: EncodedTables<'a>,
    indices: &'a [i32],
}

impl Serialize for Attributes<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let attributes = self.tables.attributes(self.indices);
        to.collect_map(attributes.map(|(key, value)| (key, value::to_json(self.tables, value.as_ref()))))
    }
}

fn frame(frame: &Frame<'_>) -> Value {
    json!({ "name": frame.text, "type": frame.frame_type, "file": frame.file, "line": frame.line })
}

/// The dictionary's tables, with unresolved indices.
struct DictionaryJson<'a>(EncodedTables<'a>);

impl Serialize for DictionaryJson<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let tables = self.0;
        let mappings = tables.mappings().map(|mapping| {
            json!({
                "memoryStart": mapping.memory_start, "memoryLimit": mapping.memory_limit,
                "fileOffset": mapping.file_offset, "filename": mapping.filename_strindex,
                "attributes": mapping.attribute_indices,
            })
        });
        let locations = tables.locations().map(|location| {
            let line = |line: &wire::Line| {
                json!({ "function": line.function_index, "line": line.line, "column": line.column })
            };
            json!({
                "mapping": location.mapping_index, "address": location.address,
                "lines": location.lines.iter().map(line).collect::<Value>(),
                "attributes": location.attribute_indices,
            })
        });
        let functions = tables.functions().map(|function| {
            json!({
                "name": function.name_strindex, "systemName": function.system_name_strindex,
                "filename": function.filename_strindex, "startLine": function.start_line,
            })
        });
        let links = tables.links().map(|link| span_json(Some(&link)));
        let attributes = tables.attribute_table().map(|attribute| {
            let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
            json!({
                "key": attribute.key_strindex, "unit": attribute.unit_strindex,
                "value": value::to_json(tables, value),
            })
        });
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("mappings", &LazyList::of(mappings))?;
        map.serialize_entry("locations", &LazyList::of(locations))?;
        map.serialize_entry("functions", &LazyList::of(functions))?;
        map.serialize_entry("links", &LazyList::of(links))?;
        map.serialize_entry("strings", &LazyList::of(tables.strings()))?;
        map.serialize_entry("attributes", &LazyList::of(attributes))?;
        map.serialize_entry("stacks", &LazyList::of(tables.stacks()))?;
        map.end()
    }
}
