//! A small profile built by hand, and what matters of one, whichever way it went.

#![allow(dead_code, reason = "every test target uses its own part")]

use otlpprof::export::{ContentType, Message};
use otlpprof::otlp::lookup::Lookup;
use otlpprof::otlp::wire::*;
use prost::Message as _;

/// A sample without indices: its service, type, stack (leaf first), attributes and values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlatSample {
    pub(crate) service: String,
    pub(crate) sample_type: (String, String),
    pub(crate) stack: Vec<String>,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) values: Vec<i64>,
}

/// Two profiled threads: `leaf` over `root` seen 3 times, `root` alone 4 times.
pub(crate) fn profile(service: &str) -> ProfilesData {
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
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let profile = Profile {
        sample_type: Some(ValueType { type_strindex: 1, unit_strindex: 2 }),
        samples: vec![sample(1, 1, 3), sample(2, 2, 4)],
        time_unix_nano: u64::try_from(now.as_nanos()).unwrap(),
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

/// The same profile in OTLP/JSON, written out as the specification has it.
pub(crate) fn json_profile(service: &str) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    serde_json::json!({
        "resourceProfiles": [{
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]},
            "scopeProfiles": [{"scope": {"name": "test"}, "profiles": [{
                "sampleType": {"typeStrindex": 1, "unitStrindex": 2},
                "samples": [
                    {"stackIndex": 1, "attributeIndices": [1], "values": ["3"]},
                    {"stackIndex": 2, "attributeIndices": [2], "values": ["4"]},
                ],
                "timeUnixNano": now.to_string(),
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

/// [`profile`] as messages of both encodings.
pub(crate) fn protobuf_message(service: &str) -> Message {
    let body = profile(service).encode_to_vec();
    Message { body, content_type: ContentType::Protobuf, samples: 2 }
}

/// See [`protobuf_message`].
pub(crate) fn json_message(service: &str) -> Message {
    let body = json_profile(service).into_bytes();
    Message { body, content_type: ContentType::Json, samples: 2 }
}

/// All samples of a message, sorted.
pub(crate) fn flatten(data: &ProfilesData) -> Vec<FlatSample> {
    let lookup = Lookup::new(data);
    let mut flat = Vec::new();
    for resource in &data.resource_profiles {
        let attributes = resource.resource.iter().flat_map(|resource| &resource.attributes);
        let named: Vec<_> = attributes.filter(|attribute| lookup.key(attribute) == "service.name").collect();
        let value = named.first().and_then(|attribute| attribute.value.as_ref()?.value.as_ref());
        let service = value.and_then(|value| lookup.value_text(value)).unwrap_or_default();
        for profile in resource.scope_profiles.iter().flat_map(|scope| &scope.profiles) {
            for sample in &profile.samples {
                let (name, unit) = lookup.value_type(profile.sample_type);
                let locations = lookup.stack(sample.stack_index).unwrap().iter();
                flat.push(FlatSample {
                    service: service.to_owned(),
                    sample_type: (name.to_owned(), unit.to_owned()),
                    stack: locations.flat_map(|index| frames(lookup, *index)).collect(),
                    attributes: lookup
                        .attributes(&sample.attribute_indices)
                        .map(|(key, value)| {
                            let text = value.and_then(|value| lookup.value_text(value)).unwrap_or_default();
                            (key.to_owned(), text.to_owned())
                        })
                        .collect(),
                    values: sample.values.clone(),
                });
            }
        }
    }
    flat.sort();
    flat
}

fn frames(lookup: Lookup<'_>, location: i32) -> Vec<String> {
    let lines = &lookup.location(location).unwrap().lines;
    lines
        .iter()
        .map(|line| {
            let function = lookup.function(line.function_index).unwrap();
            let (name, file) = (lookup.text(function.name_strindex), lookup.text(function.filename_strindex));
            format!("{name} ({file}:{})", line.line)
        })
        .collect()
}

fn string(value: &str) -> AnyValue {
    AnyValue { value: Some(Value::StringValue(value.to_owned())) }
}
