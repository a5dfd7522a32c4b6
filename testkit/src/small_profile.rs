//! A small profile built by hand, and its contents in a form that does not depend on the encoding.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use otlpprof_export::{ContentType, OutgoingMessage};
use otlpprof_otlp::lookup::{DictionaryTables as _, Lookup};
use otlpprof_otlp::wire::*;
use prost::Message as _;

/// A sample without indices, with everything that applies to its profile.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlatSample {
    /// The attributes of the resource.
    pub resource: Attributes,
    /// Name and version of the scope.
    pub scope: (String, String),
    /// Type and unit of the values.
    pub sample_type: (String, String),
    /// The period, and its type and unit.
    pub period: (i64, String, String),
    /// The start in nanoseconds since 1970, and the length in nanoseconds.
    pub window: (u64, u64),
    /// The id of the profile.
    pub profile_id: Vec<u8>,
    /// The attributes of the profile.
    pub profile_attributes: Attributes,
    /// The frames, leaf first.
    pub stack: Vec<FlatLocation>,
    /// The attributes of the sample.
    pub attributes: Attributes,
    /// The ids of trace and span. Empty if there are none.
    pub link: (Vec<u8>, Vec<u8>),
    /// The values.
    pub values: Vec<i64>,
    /// The times in nanoseconds since 1970.
    pub timestamps: Vec<u64>,
}

/// Keys, and values with their types; sorted.
pub type Attributes = Vec<(String, String)>;

/// A location without indices.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlatLocation {
    /// The address.
    pub address: u64,
    /// The functions, each with its name, system name, file and line.
    pub lines: Vec<(String, String, String, i64)>,
    /// The attributes of the location.
    pub attributes: Attributes,
    /// Start, limit, file offset, file name, and attributes.
    pub mapping: Option<(u64, u64, u64, String, Attributes)>,
}

/// Samples of two threads: `leaf` called by `root` 3 times, and `root` alone 4 times.
pub fn profile(service: &str) -> ProfilesData {
    let strings = ["", "samples", "count", "cpu", "nanoseconds", "leaf", "root", "thread.name", "Main.java"];
    let function = |name| Function { name_strindex: name, filename_strindex: 8, ..Function::default() };
    let location = |function, line| Location {
        lines: vec![Line { function_index: function, line, column: 0 }],
        ..Location::default()
    };
    let attribute =
        |value: &str| KeyValueAndUnit { key_strindex: 7, value: Some(string(value)), unit_strindex: 0 };
    let sample = |stack, attribute, value| Sample {
        stack_index: stack,
        attribute_indices: vec![attribute],
        values: vec![value],
        ..Sample::default()
    };
    let profile = Profile {
        sample_type: Some(ValueType { type_strindex: 1, unit_strindex: 2 }),
        samples: vec![sample(1, 1, 3), sample(2, 2, 4)],
        time_unix_nano: now(),
        duration_nano: 1_000_000_000,
        period_type: Some(ValueType { type_strindex: 3, unit_strindex: 4 }),
        period: 10_000_000,
        profile_id: (1..=16).collect(),
        ..Profile::default()
    };
    let name = KeyValue { key: "service.name".to_owned(), value: Some(string(service)), key_strindex: 0 };
    ProfilesData {
        resource_profiles: vec![ResourceProfiles {
            resource: Some(Resource { attributes: vec![name], ..Resource::default() }),
            scope_profiles: vec![ScopeProfiles {
                scope: Some(InstrumentationScope { name: "test".to_owned(), ..Default::default() }),
                profiles: vec![profile],
                schema_url: String::new(),
            }],
            schema_url: String::new(),
        }],
        dictionary: Some(ProfilesDictionary {
            mapping_table: vec![Mapping::default()],
            location_table: vec![Location::default(), location(1, 17), location(2, 4)],
            function_table: vec![Function::default(), function(5), function(6)],
            link_table: vec![Link::default()],
            string_table: strings.map(str::to_owned).to_vec(),
            attribute_table: vec![KeyValueAndUnit::default(), attribute("worker"), attribute("main")],
            stack_table: vec![
                Stack::default(),
                Stack { location_indices: vec![1, 2] },
                Stack { location_indices: vec![2] },
            ],
        }),
    }
}

/// The time of the first call, so that all profiles have the same time.
fn now() -> u64 {
    static NOW: OnceLock<u64> = OnceLock::new();
    *NOW.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        u64::try_from(since.as_nanos()).unwrap()
    })
}

/// [`profile`] in OTLP/JSON, written by hand from the specification.
pub fn json_profile(service: &str) -> String {
    serde_json::json!({
        "resourceProfiles": [{
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]},
            "scopeProfiles": [{"scope": {"name": "test"}, "profiles": [{
                "sampleType": {"typeStrindex": 1, "unitStrindex": 2},
                "samples": [
                    {"stackIndex": 1, "attributeIndices": [1], "values": ["3"]},
                    {"stackIndex": 2, "attributeIndices": [2], "values": ["4"]},
                ],
                "timeUnixNano": now().to_string(),
                "durationNano": "1000000000",
                "periodType": {"typeStrindex": 3, "unitStrindex": 4},
                "period": "10000000",
                "profileId": "0102030405060708090a0b0c0d0e0f10",
            }]}],
        }],
        "dictionary": {
            "mappingTable": [{}],
            "locationTable": [
                {},
                {"lines": [{"functionIndex": 1, "line": "17"}]},
                {"lines": [{"functionIndex": 2, "line": "4"}]},
            ],
            "functionTable": [
                {},
                {"nameStrindex": 5, "filenameStrindex": 8},
                {"nameStrindex": 6, "filenameStrindex": 8},
            ],
            "linkTable": [{}],
            "stringTable":
                ["", "samples", "count", "cpu", "nanoseconds", "leaf", "root", "thread.name", "Main.java"],
            "attributeTable": [
                {},
                {"keyStrindex": 7, "value": {"stringValue": "worker"}},
                {"keyStrindex": 7, "value": {"stringValue": "main"}},
            ],
            "stackTable": [{}, {"locationIndices": [1, 2]}, {"locationIndices": [2]}],
        },
    })
    .to_string()
}

/// [`profile`] as a protobuf message.
pub fn protobuf_message(service: &str) -> OutgoingMessage {
    let body = profile(service).encode_to_vec();
    OutgoingMessage { body, content_type: ContentType::Protobuf, samples: 2 }
}

/// [`profile`] as a JSON message.
pub fn json_message(service: &str) -> OutgoingMessage {
    let body = json_profile(service).into_bytes();
    OutgoingMessage { body, content_type: ContentType::Json, samples: 2 }
}

/// All samples of a message, sorted.
pub fn flatten(data: &ProfilesData) -> Vec<FlatSample> {
    let lookup = Lookup::new(data);
    let mut flat = Vec::new();
    for resource in &data.resource_profiles {
        let of_resource = resource.resource.iter().flat_map(|resource| &resource.attributes);
        let of_resource = sorted(
            of_resource.map(|attribute| {
                let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
                (lookup.key(attribute), value)
            }),
            lookup,
        );
        for scope in &resource.scope_profiles {
            let named = scope.scope.as_ref().map(|scope| (scope.name.clone(), scope.version.clone()));
            for profile in &scope.profiles {
                let period_type = lookup.value_type(profile.period_type);
                let sample_type = lookup.value_type(profile.sample_type);
                for sample in &profile.samples {
                    let locations = lookup.stack(sample.stack_index).unwrap().iter();
                    let link = lookup.link(sample.link_index);
                    flat.push(FlatSample {
                        resource: of_resource.clone(),
                        scope: named.clone().unwrap_or_default(),
                        sample_type: (sample_type.0.to_owned(), sample_type.1.to_owned()),
                        period: (profile.period, period_type.0.to_owned(), period_type.1.to_owned()),
                        window: (profile.time_unix_nano, profile.duration_nano),
                        profile_id: profile.profile_id.clone(),
                        profile_attributes: attributes(&profile.attribute_indices, lookup),
                        stack: locations.map(|&index| location(index, lookup)).collect(),
                        attributes: attributes(&sample.attribute_indices, lookup),
                        link: link
                            .map(|link| (link.trace_id.clone(), link.span_id.clone()))
                            .unwrap_or_default(),
                        values: sample.values.clone(),
                        timestamps: sample.timestamps_unix_nano.clone(),
                    });
                }
            }
        }
    }
    flat.sort();
    flat
}

fn location(index: i32, lookup: Lookup<'_>) -> FlatLocation {
    let location = lookup.location(index).unwrap();
    let text = |index| lookup.text(index).to_owned();
    let line = |line: &Line| {
        let function = lookup.function(line.function_index).unwrap();
        let names = [function.name_strindex, function.system_name_strindex, function.filename_strindex];
        let [name, system_name, file] = names.map(text);
        (name, system_name, file, line.line)
    };
    let mapping = lookup.mapping(location.mapping_index).map(|mapping| {
        let file = text(mapping.filename_strindex);
        let attributes = attributes(&mapping.attribute_indices, lookup);
        (mapping.memory_start, mapping.memory_limit, mapping.file_offset, file, attributes)
    });
    FlatLocation {
        address: location.address,
        lines: location.lines.iter().map(line).collect(),
        attributes: attributes(&location.attribute_indices, lookup),
        mapping,
    }
}

fn attributes(indices: &[i32], lookup: Lookup<'_>) -> Attributes {
    sorted(lookup.attributes(indices), lookup)
}

fn sorted<'a>(
    attributes: impl Iterator<Item = (&'a str, Option<&'a Value>)>,
    lookup: Lookup<'a>,
) -> Attributes {
    let rendered = |value: &'a Value| match lookup.value_text(value) {
        Some(text) => format!("text {text}"),
        None => format!("{value:?}"),
    };
    let mut attributes: Vec<_> =
        attributes.map(|(key, value)| (key.to_owned(), value.map(rendered).unwrap_or_default())).collect();
    attributes.sort();
    attributes
}

fn string(value: &str) -> AnyValue {
    AnyValue { value: Some(Value::StringValue(value.to_owned())) }
}
