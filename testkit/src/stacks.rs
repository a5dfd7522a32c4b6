//! Stacks as a backend sees them: the samples of messages with every index resolved.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use otlpprof_core::address::ElfVaddr;
use otlpprof_model::{RemoteFrame, attribute_keys};
use otlpprof_otlp::lookup::{DictionaryTables as _, Lookup};
use otlpprof_otlp::read::Message;
use otlpprof_otlp::wire::{Location, ProfilesData, Value};

/// One line of a location, or a location without lines.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The function's name. Empty if the backend has to name the frame.
    pub name: String,
    /// The function's file. Empty if it is unknown.
    pub file: String,
    /// The line in the file. 0 if it is unknown.
    pub line: i64,
    /// The address in the object.
    pub address: ElfVaddr,
    /// The object's path. Empty without a mapping.
    pub object: String,
    /// The object's GNU build-id in hexadecimal. Empty if there is none.
    pub build_id: String,
    /// The hash of the object's file. Empty if there is none.
    pub htlhash: String,
    /// `profile.frame.type`.
    pub frame_type: String,
    /// `otlpprof.frame.kind`. Empty if there is none.
    pub kind: String,
    /// The remote frame, parsed from the location's attribute.
    pub remote: Option<RemoteFrame>,
}

/// One sample of a profile.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The frames, leaf first. Samples of one stack share them: a message may have many.
    pub frames: Arc<[Frame]>,
    /// The number of samples that this sample stands for.
    pub value: i64,
    /// The number of distinct times, if the samples have times. A sample for a stall of many periods has one
    /// distinct time.
    pub times: i64,
    /// The profile's period. In CPU profiles, the nanoseconds between two samples.
    pub period_ns: i64,
    /// `thread.name`. Empty if there is none.
    pub thread: String,
    /// `thread.id`.
    pub thread_id: Option<i64>,
    /// `otlpprof.thread.os_id`.
    pub os_id: Option<i64>,
    /// `otlpprof.object.age`.
    pub age: Option<i64>,
    /// `otlpprof.lock.owner.id`.
    pub owner_id: Option<i64>,
    /// All attributes that are strings.
    pub labels: BTreeMap<String, String>,
    /// The ids of trace and span, if the sample has a link.
    pub link: Option<(Vec<u8>, Vec<u8>)>,
}

impl Stack {
    /// Whether a frame's function has this name.
    pub fn has(&self, name: &str) -> bool {
        self.frames.iter().any(|frame| frame.name == name)
    }
}

/// The samples of all CPU profiles.
pub fn cpu_stacks(messages: &[Message]) -> Vec<Stack> {
    stacks_of(messages, "cpu", ("samples", "count"))
}

/// The samples of all profiles with this `profile.type` and sample type.
pub fn stacks_of(messages: &[Message], profile_type: &str, sample_type: (&str, &str)) -> Vec<Stack> {
    let mut stacks = Vec::new();
    for message in messages {
        let lookup = Lookup::new(&message.data);
        let mut known = HashMap::<i32, Arc<[Frame]>>::new();
        let scopes = message.data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
        for profile in scopes.flat_map(|scope| &scope.profiles) {
            let found = lookup.attribute_text(&profile.attribute_indices, "profile.type");
            if found != Some(profile_type) || lookup.value_type(profile.sample_type) != sample_type {
                continue;
            }
            for sample in &profile.samples {
                let frames = known.entry(sample.stack_index).or_insert_with(|| {
                    let locations = lookup.stack(sample.stack_index).expect("a stack").iter();
                    locations
                        .flat_map(|&index| frames(lookup, lookup.location(index).expect("a location")))
                        .collect()
                });
                // In a sample with timestamps in place of a value, each timestamp counts as one.
                let value =
                    sample.values.first().copied().unwrap_or(sample.timestamps_unix_nano.len() as i64);
                let thread =
                    lookup.attribute_text(&sample.attribute_indices, "thread.name").unwrap_or_default();
                let number = |wanted: &str| {
                    let mut attributes = lookup.attributes(&sample.attribute_indices);
                    match attributes.find(|(key, _)| *key == wanted)?.1 {
                        Some(Value::IntValue(number)) => Some(*number),
                        other => panic!("{wanted}: {other:?}"),
                    }
                };
                stacks.push(Stack {
                    frames: Arc::clone(frames),
                    value,
                    times: sample.timestamps_unix_nano.iter().collect::<BTreeSet<_>>().len() as i64,
                    period_ns: profile.period,
                    thread: thread.to_owned(),
                    thread_id: number("thread.id"),
                    os_id: number("otlpprof.thread.os_id"),
                    age: number("otlpprof.object.age"),
                    owner_id: number("otlpprof.lock.owner.id"),
                    labels: labels(lookup, &sample.attribute_indices),
                    link: link(&message.data, sample.link_index),
                });
            }
        }
    }
    stacks
}

fn labels(lookup: Lookup<'_>, attributes: &[i32]) -> BTreeMap<String, String> {
    let text = |(key, value): (&str, Option<&Value>)| match value {
        Some(Value::StringValue(text)) => Some((key.to_owned(), text.clone())),
        _ => None,
    };
    lookup.attributes(attributes).filter_map(text).collect()
}

fn link(data: &ProfilesData, index: i32) -> Option<(Vec<u8>, Vec<u8>)> {
    let link = &data.dictionary.as_ref()?.link_table[index as usize];
    (index != 0).then(|| (link.trace_id.clone(), link.span_id.clone()))
}

fn frames(lookup: Lookup<'_>, location: &Location) -> Vec<Frame> {
    let attribute = |key| lookup.attribute_text(&location.attribute_indices, key).unwrap_or_default();
    let mapping = lookup.mapping(location.mapping_index);
    let of_mapping = |key| {
        let attribute = mapping.and_then(|mapping| lookup.attribute_text(&mapping.attribute_indices, key));
        attribute.unwrap_or_default().to_owned()
    };
    let bare = Frame {
        name: String::new(),
        file: String::new(),
        line: 0,
        address: ElfVaddr(location.address),
        object: mapping.map_or("", |mapping| lookup.text(mapping.filename_strindex)).to_owned(),
        build_id: of_mapping("process.executable.build_id.gnu"),
        htlhash: of_mapping("process.executable.build_id.htlhash"),
        frame_type: attribute("profile.frame.type").to_owned(),
        kind: attribute(attribute_keys::FRAME_KIND).to_owned(),
        remote: RemoteFrame::parse(attribute(attribute_keys::FRAME_REMOTE)),
    };
    if location.lines.is_empty() {
        return vec![bare];
    }
    let of_line = |line: &otlpprof_otlp::wire::Line| {
        let function = lookup.function(line.function_index).expect("a function");
        Frame {
            name: lookup.text(function.name_strindex).to_owned(),
            file: lookup.text(function.filename_strindex).to_owned(),
            line: line.line,
            ..bare.clone()
        }
    };
    location.lines.iter().map(of_line).collect()
}
