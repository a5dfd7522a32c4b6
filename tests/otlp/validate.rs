//! `otlpprof validate`: a message that breaks no rule and, for each rule, a message that breaks only this
//! rule.

use std::io::Write as _;

use otlpprof_otlp::reader::Limits;
use otlpprof_otlp::validate::rules::{RuleId, Severity};
use otlpprof_otlp::validate::{self, report::Report};
use otlpprof_otlp::wire::*;
use otlpprof_testkit::otlp_fixture::{BUILD_ID, DURATION, TIME, field, framed, inline, valid};
use prost::Message as _;

fn names(report: &Report) -> Vec<&'static str> {
    report.breaches().map(|(rule, _)| rule.rule().name).collect()
}

fn check(bytes: &[u8]) -> Vec<&'static str> {
    names(&validate::validate(bytes, 1))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

#[test]
fn valid_files_break_no_rule() {
    let data = valid();
    let mut other = valid();
    for profile in &mut other.resource_profiles[0].scope_profiles[0].profiles {
        profile.profile_id[0] ^= 0x80;
    }
    let framed = [framed(&data), framed(&other)].concat();
    assert_eq!(check(&data.encode_to_vec()), Vec::<&str>::new());
    assert_eq!(check(&framed), Vec::<&str>::new());
    assert_eq!(check(&gzip(&framed)), Vec::<&str>::new());
    assert_eq!(check(JSON.as_bytes()), Vec::<&str>::new());

    let report = validate::validate(&framed, 1);
    assert_eq!((report.messages, report.profiles, report.samples), (2, 4, 8));
}

/// The smallest OTLP/JSON document that breaks no rule.
const JSON: &str = r#"{"resourceProfiles":[{
  "resource":{"attributes":[{"key":"service.name","value":{"stringValue":"json"}}]},
  "scopeProfiles":[{"scope":{"name":"test"},"profiles":[{
    "sampleType":{"typeStrindex":1,"unitStrindex":2},
    "periodType":{"typeStrindex":3,"unitStrindex":4},
    "period":"10000000","timeUnixNano":"1700000000000000000","durationNano":"1000000000",
    "profileId":"000102030405060708090a0b0c0d0e0f",
    "samples":[{"stackIndex":1,"values":["5"]}]}]}]}],
 "dictionary":{
  "mappingTable":[{}],"linkTable":[{}],"attributeTable":[{},{"keyStrindex":6,"value":{"stringValue":"jvm"}}],
  "functionTable":[{},{"nameStrindex":5}],
  "locationTable":[{},{"lines":[{"functionIndex":1,"line":"7"}],"attributeIndices":[1]}],
  "stackTable":[{},{"locationIndices":[1]}],
  "stringTable":["","samples","count","cpu","nanoseconds","a.B.main","profile.frame.type"]}}"#;

/// A modified [`JSON`].
fn json(from: &str, to: &str) -> Vec<u8> {
    assert!(JSON.contains(from), "{from}");
    JSON.replacen(from, to, 1).into_bytes()
}

fn tables(data: &mut ProfilesData) -> &mut ProfilesDictionary {
    data.dictionary.as_mut().unwrap()
}

fn resource(data: &mut ProfilesData) -> &mut Vec<KeyValue> {
    &mut data.resource_profiles[0].resource.as_mut().unwrap().attributes
}

/// The profile with values.
fn cpu(data: &mut ProfilesData) -> &mut Profile {
    &mut data.resource_profiles[0].scope_profiles[0].profiles[0]
}

/// The profile with timestamps.
fn wall(data: &mut ProfilesData) -> &mut Profile {
    &mut data.resource_profiles[0].scope_profiles[0].profiles[1]
}

fn string(data: &mut ProfilesData, text: &str) -> i32 {
    let strings = &mut tables(data).string_table;
    if let Some(index) = strings.iter().position(|one| one == text) {
        return i32::try_from(index).unwrap();
    }
    strings.push(text.into());
    i32::try_from(strings.len() - 1).unwrap()
}

/// Adds an attribute to the first sample.
fn attribute(data: &mut ProfilesData, key: &str, value: Value) {
    let index = attribute_entry(data, key, value);
    cpu(data).samples[0].attribute_indices.push(index);
}

/// Adds an entry to the attribute table.
fn attribute_entry(data: &mut ProfilesData, key: &str, value: Value) -> i32 {
    let key_strindex = string(data, key);
    let table = &mut tables(data).attribute_table;
    table.push(KeyValueAndUnit {
        key_strindex,
        value: Some(AnyValue { value: Some(value) }),
        unit_strindex: 0,
    });
    i32::try_from(table.len() - 1).unwrap()
}

/// A mutable reference to the value of the first attribute with this key.
fn value_of<'a>(data: &'a mut ProfilesData, key: &str) -> &'a mut Value {
    let key = string(data, key);
    let attribute = tables(data).attribute_table.iter_mut().find(|one| one.key_strindex == key);
    attribute.unwrap().value.as_mut().unwrap().value.as_mut().unwrap()
}

/// A mutable reference to the text of the first attribute with this key.
fn text<'a>(data: &'a mut ProfilesData, key: &str) -> &'a mut String {
    match value_of(data, key) {
        Value::StringValue(text) => text,
        other => panic!("{other:?}"),
    }
}

fn drop_attribute(indices: &mut Vec<i32>, position: usize) {
    indices.remove(position);
}

/// A modified form of [`valid`].
fn broken(mutate: impl FnOnce(&mut ProfilesData)) -> Vec<u8> {
    let mut data = valid();
    mutate(&mut data);
    data.encode_to_vec()
}

/// A file that breaks this rule.
fn breaking(rule: RuleId) -> Vec<u8> {
    use RuleId::*;
    let plain = || valid().encode_to_vec();
    match rule {
        UnknownFormat => b"hello".to_vec(),
        GzipCorrupt => {
            let whole = gzip(&framed(&valid()));
            whole[..whole.len() - 8].to_vec()
        }
        TooLarge => gzip(&[framed(&valid()), framed(&valid())].concat()),
        FrameTruncated => [framed(&valid()), vec![0, 0, 0, 2, 0x0a]].concat(),
        WireMalformed => [plain(), vec![0x0b]].concat(),
        WireType => field(1, &field(2, &field(2, &[0x30 | 1, 0, 0, 0, 0, 0, 0, 0, 0]))),
        WireUtf8 => field(2, &field(5, b"\xff")),
        TooDeep => {
            let mut value = Vec::new();
            for _ in 0..100 {
                value = field(5, &field(1, &value));
            }
            field(2, &field(6, &field(2, &value)))
        }
        OldSampleLayout => field(1, &field(2, &field(2, &field(2, &[0x08, 1, 0x12, 1, 9, 0x1a, 1, 2])))),
        FileEmpty => Vec::new(),
        JsonMalformed => json("\"dictionary\"", "dictionary"),
        JsonValue => json(r#""10000000""#, r#""ten""#),

        UnknownField => [plain(), field(9, b"new")].concat(),
        IntegerOverflow => {
            // A profile like the first one, whose sample has the stack index 2 + 2³², which our encoders
            // never write.
            let sample = [0x08, 0x82, 0x80, 0x80, 0x80, 0x10, 0x22, 1, 1];
            let mut data = valid();
            let scope = &mut data.resource_profiles[0].scope_profiles[0];
            let header = Profile {
                samples: vec![],
                profile_id: vec![],
                duration_nano: 1,
                ..scope.profiles[0].clone()
            };
            let mut resource = data.resource_profiles[0].clone();
            resource.scope_profiles[0].profiles = vec![];
            let profile = field(2, &[header.encode_to_vec(), field(2, &sample)].concat());
            let scope = [resource.scope_profiles[0].encode_to_vec(), profile].concat();
            resource.scope_profiles = vec![];
            let resource = field(1, &[resource.encode_to_vec(), field(2, &scope)].concat());
            [resource, data.encode_to_vec()].concat()
        }
        RepeatedSingular => [plain(), field(2, &[])].concat(),
        JsonUnknownKey => json(r#""period":"#, r#""colour":"red","period":"#),
        JsonSnakeCase => json("stackIndex", "stack_index"),
        JsonDuplicateKey => json(r#""period":"#, r#""period":"10000000","period":"#),
        JsonInt64Number => json(r#"["5"]"#, "[5]"),
        JsonBase64Form => {
            json(r#""period":"#, r#""originalPayload":"-_8=","originalPayloadFormat":"jfr","period":"#)
        }
        JsonBase64Id => json("000102030405060708090a0b0c0d0e0f", "AAECAwQFBgcICQoLDA0ODw=="),
        MessageTooLarge => broken(|data| wall(data).original_payload = vec![0; 21 << 20]),
        NoProfiles => broken(|data| {
            data.resource_profiles.clear();
            data.dictionary = Some(otlpprof_testkit::otlp_fixture::Dictionary::new().0);
        }),

        DictionaryMissing => broken(|data| data.dictionary = None),
        TableEmpty => broken(|data| tables(data).link_table.clear()),
        TableZeroValue => broken(|data| tables(data).function_table[0].start_line = 1),
        LinkZeroBytes => {
            broken(|data| tables(data).link_table[0] = Link { trace_id: vec![0; 16], span_id: vec![0; 8] })
        }
        IndexOutOfRange => broken(|data| cpu(data).samples[0].attribute_indices.push(-1)),
        DictionaryDuplicate => broken(|data| {
            tables(data).link_table.push(Link { trace_id: vec![0xaa; 16], span_id: vec![0xbb; 8] });
            cpu(data).samples[1].link_index = 2;
        }),
        DictionaryOrphan => broken(|data| tables(data).string_table.push("nobody's".into())),
        ZeroReference => broken(|data| tables(data).stack_table[1].location_indices.push(0)),
        FunctionNameless => broken(|data| {
            tables(data).function_table.push(Function { start_line: 3, ..Default::default() });
            let function_index = i32::try_from(tables(data).function_table.len() - 1).unwrap();
            let lines = &mut tables(data).location_table[2].lines;
            lines.push(Line { function_index, line: 1, column: 0 });
        }),
        AddressOutsideMapping => broken(|data| tables(data).mapping_table[1].memory_limit = 0x1234),
        LinkIdLength => broken(|data| tables(data).link_table[1].span_id.push(1)),
        LinkIdZero => broken(|data| tables(data).link_table[1].span_id = vec![0; 8]),

        AttributeKeyEmpty => broken(|data| resource(data).push(inline("", "value"))),
        AttributeKeyConflict => broken(|data| resource(data)[0].key_strindex = 1),
        AttributeKeyDuplicate => broken(|data| resource(data).push(inline("service.name", "other"))),
        AttributeNotInline => broken(|data| {
            let key_strindex = string(data, "host.name");
            let value = Some(AnyValue { value: Some(Value::StringValue("here".into())) });
            resource(data).push(KeyValue { key: String::new(), value, key_strindex });
        }),
        AttributeStrindex => broken(|data| attribute(data, "colour", Value::StringValueStrindex(1))),
        AttributeType => broken(|data| attribute(data, "cpu.logical_number", Value::StringValue("3".into()))),
        CodeAttribute => broken(|data| attribute(data, "code.function.name", Value::StringValue("f".into()))),
        FrameTypeMissing => {
            broken(|data| drop_attribute(&mut tables(data).location_table[2].attribute_indices, 0))
        }
        FrameTypeUnknown => broken(|data| *text(data, "profile.frame.type") = "cobol".into()),
        BuildIdMissing => broken(|data| {
            // A second mapping without attributes, used by a frame without an address.
            let filename_strindex = string(data, "/opt/other.so");
            tables(data).mapping_table.push(Mapping { filename_strindex, ..Default::default() });
            tables(data).location_table[2].mapping_index = 2;
        }),
        HtlhashMissing => broken(|data| {
            let attributes = vec![tables(data).mapping_table[1].attribute_indices[0]];
            tables(data).mapping_table.push(Mapping { attribute_indices: attributes, ..Default::default() });
            tables(data).location_table[2].mapping_index = 2;
        }),
        BuildIdMalformed => {
            broken(|data| *text(data, "process.executable.build_id.htlhash") = "fedcba98".into())
        }
        RemoteFrameLines => broken(|data| {
            let tables = tables(data);
            let address = tables.location_table[1].address;
            tables.string_table.push(format!("{BUILD_ID}.<remote>({address:#x})"));
            let name_strindex = tables.string_table.len() as i32 - 1;
            tables.function_table.push(Function { name_strindex, ..Function::default() });
            let function_index = tables.function_table.len() as i32 - 1;
            tables.location_table[1].lines.push(Line { function_index, ..Line::default() });
        }),
        RemoteFrameMismatch => broken(|data| tables(data).location_table[1].address += 1),

        ResourceMissing => broken(|data| data.resource_profiles[0].resource = None),
        ScopeMissing => broken(|data| data.resource_profiles[0].scope_profiles[0].scope = None),

        SampleTypeMissing => broken(|data| cpu(data).sample_type = None),
        TypeUnitMissing => broken(|data| cpu(data).sample_type.as_mut().unwrap().unit_strindex = 0),
        PeriodMissing => broken(|data| cpu(data).period = 0),
        PeriodTypeMissing => broken(|data| {
            let unit = string(data, "nanoseconds");
            let name = string(data, "cpu");
            cpu(data).period_type = Some(ValueType { type_strindex: 0, unit_strindex: unit });
            // The name is still used by another profile.
            wall(data).sample_type.as_mut().unwrap().type_strindex = name;
        }),
        TimeMissing => broken(|data| cpu(data).time_unix_nano = 0),
        ProfileIdLength => broken(|data| cpu(data).profile_id.truncate(8)),
        ProfileIdZero => broken(|data| cpu(data).profile_id = vec![0; 16]),
        ProfileIdDuplicate => broken(|data| cpu(data).profile_id = vec![2; 16]),
        ProfileEmpty => broken(|data| {
            let mut empty = wall(data).clone();
            empty.samples.clear();
            empty.profile_id.clear();
            empty.duration_nano += 1;
            data.resource_profiles[0].scope_profiles[0].profiles.push(empty);
        }),
        ProfileDuplicate => broken(|data| {
            let mut again = wall(data).clone();
            again.profile_id.clear();
            data.resource_profiles[0].scope_profiles[0].profiles.push(again);
        }),
        PayloadFormat => broken(|data| wall(data).original_payload_format.clear()),
        PayloadFormatUnknown => broken(|data| wall(data).original_payload_format = "text".into()),

        SampleEmpty => broken(|data| cpu(data).samples[1].values.clear()),
        SampleLengths => broken(|data| {
            for sample in &mut wall(data).samples {
                sample.values = vec![1; sample.timestamps_unix_nano.len() + 1];
            }
        }),
        SampleSeveralValues => broken(|data| cpu(data).samples[1].values.push(1)),
        SampleShapes => broken(|data| {
            let sample = &mut cpu(data).samples[1];
            sample.values.clear();
            sample.timestamps_unix_nano = vec![TIME];
        }),
        SampleNegative => broken(|data| cpu(data).samples[1].values[0] = -1),
        SampleDuplicate => broken(|data| {
            let mut again = cpu(data).samples[0].clone();
            again.attribute_indices.reverse();
            cpu(data).samples.push(again);
        }),
        TimestampOutside => broken(|data| wall(data).samples[0].timestamps_unix_nano[1] = TIME + DURATION),
        ValuesBesideTimestamps => broken(|data| {
            for sample in &mut wall(data).samples {
                sample.values = vec![1; sample.timestamps_unix_nano.len()];
            }
        }),
        TooManyLabels => broken(|data| {
            for number in 0..27 {
                attribute(data, &format!("label{number}"), Value::IntValue(number));
            }
        }),
        LabelTooLong => broken(|data| resource(data)[0] = inline("service.name", &"s".repeat(2049))),
    }
}

/// Files that break a rule in another way than [`breaking`]'s.
fn breaking_otherwise() -> Vec<(RuleId, Vec<u8>)> {
    use RuleId::*;
    let text = |text: &str| Value::StringValue(text.into());
    let any = |value| AnyValue { value: Some(value) };
    let array = |value| Value::ArrayValue(ArrayValue { values: vec![any(value)] });
    let list = |entries: Vec<KeyValue>| Value::KvlistValue(KeyValueList { values: entries });
    let named = |key: &str, value| KeyValue { key: key.into(), value: Some(any(value)), key_strindex: 0 };
    let in_resource = |value| {
        broken(|data| {
            resource(data).push(KeyValue { key: "nested".into(), value: Some(any(value)), key_strindex: 0 })
        })
    };
    let in_scope = |attribute: KeyValue| {
        broken(|data| {
            let scope = &mut data.resource_profiles[0].scope_profiles[0].scope;
            scope.as_mut().unwrap().attributes.push(attribute);
        })
    };
    let strindex = || Value::StringValueStrindex(1);
    let twice = || list(vec![named("key", text("a")), named("key", text("b"))]);
    vec![
        (AttributeNotInline, in_resource(strindex())),
        (AttributeNotInline, in_resource(array(strindex()))),
        (AttributeNotInline, in_resource(array(list(vec![named("key", strindex())])))),
        (
            AttributeNotInline,
            in_resource(list(vec![KeyValue { key: String::new(), value: None, key_strindex: 1 }])),
        ),
        (AttributeNotInline, in_scope(named("key", strindex()))),
        (
            AttributeKeyConflict,
            in_resource(list(vec![KeyValue { key_strindex: 1, ..named("key", text("a")) }])),
        ),
        (AttributeKeyDuplicate, in_resource(twice())),
        (AttributeKeyDuplicate, in_resource(array(twice()))),
        (AttributeKeyDuplicate, broken(|data| attribute(data, "nested", array(twice())))),
        (AttributeKeyDuplicate, broken(|data| attribute(data, "thread.name", text("another")))),
        (AttributeKeyEmpty, in_scope(named("", text("value")))),
        (AttributeStrindex, broken(|data| attribute(data, "colour", array(strindex())))),
        (AttributeType, broken(|data| *value_of(data, "thread.name") = Value::IntValue(7))),
        (AttributeType, broken(|data| *value_of(data, "thread.id") = text("7"))),
        (CodeAttribute, broken(|data| resource(data).push(inline("code.file.path", "A.java")))),
        (CodeAttribute, in_scope(inline("code.function.name", "f"))),
        (LabelTooLong, in_scope(inline("key", &"s".repeat(2049)))),
        (LabelTooLong, broken(|data| attribute(data, "key", text(&"s".repeat(2049))))),
        (
            BuildIdMalformed,
            broken(|data| {
                // A separate mapping, since a remote frame gives the build-id of the first one.
                let gnu = attribute_entry(data, "process.executable.build_id.gnu", text("not hexadecimal"));
                let htlhash = tables(data).mapping_table[1].attribute_indices[1];
                let attribute_indices = vec![gnu, htlhash];
                tables(data).mapping_table.push(Mapping { attribute_indices, ..Default::default() });
                tables(data).location_table[2].mapping_index = 2;
            }),
        ),
        (TypeUnitMissing, broken(|data| cpu(data).period_type.as_mut().unwrap().unit_strindex = 0)),
        (ZeroReference, broken(|data| cpu(data).samples[0].attribute_indices.push(0))),
        (
            ProfileDuplicate,
            broken(|data| {
                let mut again = wall(data).clone();
                again.profile_id.clear();
                again.attribute_indices = cpu(data).attribute_indices.clone();
                data.resource_profiles[0].scope_profiles[0].profiles.push(again);
            }),
        ),
        (
            ProfileDuplicate,
            broken(|data| {
                let mut again = data.resource_profiles[0].scope_profiles[0].clone();
                again.profiles.remove(0);
                again.profiles[0].profile_id.clear();
                data.resource_profiles[0].scope_profiles.push(again);
            }),
        ),
        (
            JsonBase64Form,
            json(r#""period":"#, r#""originalPayload":"Zg","originalPayloadFormat":"jfr","period":"#),
        ),
    ]
}

#[test]
fn every_rule_is_broken_by_its_file_and_no_other() {
    let first = RuleId::ALL.iter().map(|&rule| (rule, breaking(rule)));
    for (number, (rule, file)) in first.chain(breaking_otherwise()).enumerate() {
        let limits = match rule {
            RuleId::TooLarge => Limits { max_bytes: framed(&valid()).len(), ..Limits::default() },
            _ => Limits::default(),
        };
        let report = validate::validate_within(&file, 3, limits);
        let details: Vec<_> = report.breaches().collect();
        assert_eq!(names(&report), [rule.rule().name], "{number}: {details:#?}");
    }
}

#[test]
fn findings_say_where() {
    let place = |rule| {
        let report = validate::validate(&breaking(rule), 1);
        let (_, breaches) = report.breaches().next().unwrap();
        let finding = &breaches.first[0];
        format!("{}: {}", finding.place, finding.detail)
    };
    let attributes = valid().dictionary.unwrap().attribute_table.len();
    let strings = valid().dictionary.unwrap().string_table.len();
    assert_eq!(
        place(RuleId::IndexOutOfRange),
        format!("message 0, profile 0, sample 0: attribute_indices is -1, attribute_table has {attributes}")
    );
    assert_eq!(place(RuleId::DictionaryOrphan), format!("message 0, string_table[{strings}]: \"nobody's\""));
    assert_eq!(place(RuleId::TableEmpty), "message 0, dictionary.link_table: ");
    assert_eq!(
        place(RuleId::FrameTruncated),
        format!("byte {}: truncated: a message of 2 bytes is announced and 1 follow", framed(&valid()).len())
    );
    assert_eq!(
        place(RuleId::JsonValue),
        "message 0, resourceProfiles[0].scopeProfiles[0].profiles[0].period: expected a 64-bit integer, \
         found \"ten\" (byte 0)"
    );
}

#[test]
fn repetition_is_counted_and_not_kept() {
    let bytes = broken(|data| {
        for _ in 0..100 {
            cpu(data).samples[0].attribute_indices.push(1000);
        }
    });
    let report = validate::validate(&bytes, 5);
    let kept: Vec<_> =
        report.breaches().map(|(_, breaches)| (breaches.first.len(), breaches.count)).collect();
    assert_eq!(kept[0], (5, 100));
    assert_eq!(report.count(Severity::Error), 100);
}

#[test]
fn a_file_without_a_message_is_unreadable() {
    for file in [&b""[..], &gzip(b"")] {
        let report = validate::validate(file, 1);
        assert_eq!((names(&report), report.count(Severity::Unreadable)), (vec!["file-empty"], 1));
    }
}

/// Regression: Go libraries write zero entries with all parts present and empty, which were reported as
/// errors.
#[test]
fn zero_entries_may_have_their_parts() {
    let with = |mutate: &dyn Fn(&mut ProfilesDictionary)| {
        let bytes = broken(|data| mutate(data.dictionary.as_mut().unwrap()));
        names(&validate::validate(&bytes, 1))
    };
    let empty = || Some(AnyValue { value: None });
    assert_eq!(with(&|tables| tables.attribute_table[0].value = empty()), Vec::<&str>::new());
    let json = br#"{"dictionary":{"attributeTable":[{"value":{}}]}}"#;
    assert!(!names(&validate::validate(json, 1)).contains(&"table-zero-value"));
    let zero_bytes = |trace, span| {
        with(&move |tables| {
            tables.link_table[0] = Link { trace_id: vec![0; trace], span_id: vec![0; span] };
        })
    };
    for (trace, span) in [(16, 8), (16, 0), (0, 8)] {
        assert_eq!(zero_bytes(trace, span), ["link-zero-bytes"]);
    }
    assert_eq!(zero_bytes(15, 8), ["table-zero-value", "link-zero-bytes"]);
    // An empty text counts as a value.
    let text = || Some(AnyValue { value: Some(Value::StringValue(String::new())) });
    assert_eq!(with(&|tables| tables.attribute_table[0].value = text()), ["table-zero-value"]);
}

/// Regression: a profile of OTLP 1.8 with an id was reported as malformed bytes instead of an old layout.
#[test]
fn old_layouts_are_named() {
    let file = |profile: &[u8]| field(1, &field(2, &field(2, profile)));
    let (sample, id) = (field(2, &[0x08, 1, 0x12, 1, 5, 0x1a, 1, 1]), field(8, &[7; 16]));
    let times = [&[0x19][..], &7_u64.to_le_bytes(), &[0x20, 9]].concat();
    for profile in [sample.clone(), [sample.clone(), id.clone()].concat(), [sample, times, id].concat()] {
        assert_eq!(names(&validate::validate(&file(&profile), 1)), ["old-sample-layout"]);
    }
    let json = br#"{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"sample":[{"stackIndex":1}]}]}]}]}"#;
    assert_eq!(names(&validate::validate(json, 1)), ["old-sample-layout"]);
}
