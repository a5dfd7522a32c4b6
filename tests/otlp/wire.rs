//! `otlp::wire`, compared with the crate `opentelemetry-proto`. The same construction is compiled against
//! both sets of types. It gives the same bytes, and each set reads the other's bytes without losing a field.

use prost::Message;

/// A construction in which every field is set to a different value, so that no two fields can be confused.
/// `$types` is a module that contains all message types.
macro_rules! every_field_set {
    ($name:ident, $types:path) => {
        mod $name {
            use $types::*;

            fn value(value: Value) -> Option<AnyValue> {
                Some(AnyValue { value: Some(value) })
            }

            fn every_value() -> Vec<KeyValue> {
                let array = ArrayValue {
                    values: vec![AnyValue { value: None }, AnyValue { value: Some(Value::IntValue(-1)) }],
                };
                let map = KeyValueList {
                    values: vec![KeyValue {
                        key: "k".into(),
                        value: value(Value::BoolValue(false)),
                        key_strindex: 0,
                    }],
                };
                [
                    Value::StringValue("text".into()),
                    Value::BoolValue(true),
                    Value::IntValue(i64::MIN),
                    Value::DoubleValue(1.5),
                    Value::ArrayValue(array),
                    Value::KvlistValue(map),
                    Value::BytesValue(vec![0, 255]),
                    Value::StringValueStrindex(7),
                ]
                .into_iter()
                .zip(1..)
                .map(|(one, index)| KeyValue {
                    key: format!("key{index}"),
                    value: value(one),
                    key_strindex: index,
                })
                .collect()
            }

            fn resource() -> Resource {
                Resource {
                    attributes: every_value(),
                    dropped_attributes_count: 11,
                    entity_refs: vec![EntityRef {
                        schema_url: "entity-schema".into(),
                        r#type: "service".into(),
                        id_keys: vec!["id".into()],
                        description_keys: vec!["description".into(), "more".into()],
                    }],
                }
            }

            fn scope() -> InstrumentationScope {
                InstrumentationScope {
                    name: "scope".into(),
                    version: "1.2".into(),
                    attributes: every_value(),
                    dropped_attributes_count: 12,
                }
            }

            fn profile() -> Profile {
                Profile {
                    sample_type: Some(ValueType { type_strindex: 1, unit_strindex: 2 }),
                    samples: vec![Sample {
                        stack_index: 3,
                        attribute_indices: vec![4, 0, -5],
                        link_index: 6,
                        values: vec![i64::MAX, 0, -1],
                        timestamps_unix_nano: vec![u64::MAX, 0, 1],
                    }],
                    time_unix_nano: 13,
                    duration_nano: 14,
                    period_type: Some(ValueType { type_strindex: 15, unit_strindex: 16 }),
                    period: -17,
                    profile_id: vec![18; 16],
                    dropped_attributes_count: 19,
                    original_payload_format: "jfr".into(),
                    original_payload: b"FLR\0".to_vec(),
                    attribute_indices: vec![20, 21],
                }
            }

            fn dictionary() -> ProfilesDictionary {
                ProfilesDictionary {
                    mapping_table: vec![Mapping {
                        memory_start: u64::MAX,
                        memory_limit: 22,
                        file_offset: 23,
                        filename_strindex: 24,
                        attribute_indices: vec![25, 26],
                    }],
                    location_table: vec![Location {
                        mapping_index: 27,
                        address: 0xffff_8000_0000_0000,
                        lines: vec![Line { function_index: 28, line: 29, column: 30 }],
                        attribute_indices: vec![31],
                    }],
                    function_table: vec![Function {
                        name_strindex: 32,
                        system_name_strindex: 33,
                        filename_strindex: 34,
                        start_line: 35,
                    }],
                    link_table: vec![Link { trace_id: vec![36; 16], span_id: vec![37; 8] }],
                    string_table: vec!["".into(), "ü".into()],
                    attribute_table: vec![KeyValueAndUnit {
                        key_strindex: 38,
                        value: value(Value::StringValue("v".into())),
                        unit_strindex: 39,
                    }],
                    stack_table: vec![Stack { location_indices: vec![40, 41] }],
                }
            }

            pub(crate) fn data() -> ProfilesData {
                ProfilesData {
                    resource_profiles: vec![ResourceProfiles {
                        resource: Some(resource()),
                        scope_profiles: vec![ScopeProfiles {
                            scope: Some(scope()),
                            profiles: vec![profile(), Profile::default()],
                            schema_url: "scope-schema".into(),
                        }],
                        schema_url: "resource-schema".into(),
                    }],
                    dictionary: Some(dictionary()),
                }
            }

            pub(crate) fn response() -> ExportProfilesServiceResponse {
                ExportProfilesServiceResponse {
                    partial_success: Some(ExportProfilesPartialSuccess {
                        rejected_profiles: 42,
                        error_message: "why".into(),
                    }),
                }
            }
        }
    };
}

mod oracle_types {
    pub(crate) use opentelemetry_proto::tonic::collector::profiles::v1development::*;
    pub(crate) use opentelemetry_proto::tonic::common::v1::{any_value::Value, *};
    pub(crate) use opentelemetry_proto::tonic::profiles::v1development::*;
    pub(crate) use opentelemetry_proto::tonic::resource::v1::*;
}

every_field_set!(ours, otlpprof_otlp::wire);
every_field_set!(oracle, super::oracle_types);

#[test]
fn every_field_encodes_as_the_oracle_encodes_it() {
    assert_eq!(ours::data().encode_to_vec(), oracle::data().encode_to_vec());
    assert_eq!(ours::response().encode_to_vec(), oracle::response().encode_to_vec());
}

#[test]
fn every_field_survives_both_ways() {
    let bytes = oracle::data().encode_to_vec();
    assert_eq!(otlpprof_otlp::wire::ProfilesData::decode(&bytes[..]).unwrap(), ours::data());
    assert_eq!(
        oracle_types::ProfilesData::decode(&ours::data().encode_to_vec()[..]).unwrap(),
        oracle::data()
    );

    let bytes = oracle::response().encode_to_vec();
    let read = otlpprof_otlp::wire::ExportProfilesServiceResponse::decode(&bytes[..]).unwrap();
    assert_eq!(read, ours::response());
}

#[test]
fn a_request_has_the_fields_of_a_file() {
    let data = oracle::data();
    let request = oracle_types::ExportProfilesServiceRequest {
        resource_profiles: data.resource_profiles,
        dictionary: data.dictionary,
    };
    let read =
        otlpprof_otlp::wire::ExportProfilesServiceRequest::decode(&request.encode_to_vec()[..]).unwrap();
    assert_eq!(read, ours::data());
}

/// `opentelemetry-proto` has no `google.rpc.Status`. These bytes follow `google/rpc/status.proto` and
/// `google/protobuf/any.proto`.
#[test]
fn an_error_body_is_read() {
    use otlpprof_otlp::wire::{Status, StatusDetail};
    let detail = [&[0x0a, 3][..], b"url", &[0x12, 2, 0xfe, 0xff]].concat();
    let bytes =
        [&[0x08, 3, 0x12, 3][..], b"bad", &[0x1a, u8::try_from(detail.len()).unwrap()], &detail].concat();
    let status = Status {
        code: 3,
        message: "bad".into(),
        details: vec![StatusDetail { type_url: "url".into(), value: vec![0xfe, 0xff] }],
    };
    assert_eq!(Status::decode(&bytes[..]).unwrap(), status);
    assert_eq!(status.encode_to_vec(), bytes);
}

/// The reader's field table contains every field that `opentelemetry-proto` writes, with the same number and
/// wire type.
#[test]
fn the_reader_knows_every_field() {
    use otlpprof_otlp::read_error::Notes;
    let message = otlpprof_otlp::read::decode_protobuf(&oracle::data().encode_to_vec()).unwrap();
    assert_eq!(message.notes, Notes::default());
    assert_eq!(message.data, ours::data());
}
