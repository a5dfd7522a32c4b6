//! The OTLP messages of the profiles signal, field by field as on the wire.
//!
//! The layout follows opentelemetry-proto v1.10 and v1.11, in the packages
//! `opentelemetry.proto.profiles.v1development`, `.collector.profiles.v1development`, `.resource.v1` and
//! `.common.v1`, and googleapis' `google/rpc/status.proto`. The names come from the `.proto` files.
//! `tests/otlp/wire.rs` compares every field with the crate `opentelemetry-proto`.
//!
//! Three statements hold for all messages and are not repeated below:
//!
//! - A field `*_index`, `*_indices` or `*_strindex` is an index into the table of that name in
//!   [`ProfilesDictionary`]. Index 0 means "none": every table has its zero value there.
//! - A field with its default value is not on the wire; an absent field reads as its default value.
//! - Nothing is checked here: an index may lie outside its table, an id may have any length. `otlp::validate`
//!   has the rules.

use prost::{Message, Oneof};

/// A whole message or file: profiles, and the tables that they refer to.
#[derive(Clone, PartialEq, Message)]
pub struct ProfilesData {
    /// The profiles, grouped by resource.
    #[prost(message, repeated, tag = "1")]
    pub resource_profiles: Vec<ResourceProfiles>,
    /// The tables that all profiles of this message share.
    #[prost(message, optional, tag = "2")]
    pub dictionary: Option<ProfilesDictionary>,
}

/// The message that a collector receives. It has the fields of [`ProfilesData`], so files and requests are
/// read alike.
pub type ExportProfilesServiceRequest = ProfilesData;

/// The tables that all profiles of a message share. Element 0 of each table is the zero value of its type.
#[derive(Clone, PartialEq, Message)]
pub struct ProfilesDictionary {
    /// Loaded objects.
    #[prost(message, repeated, tag = "1")]
    pub mapping_table: Vec<Mapping>,
    /// Frames.
    #[prost(message, repeated, tag = "2")]
    pub location_table: Vec<Location>,
    /// Functions.
    #[prost(message, repeated, tag = "3")]
    pub function_table: Vec<Function>,
    /// Spans.
    #[prost(message, repeated, tag = "4")]
    pub link_table: Vec<Link>,
    /// Strings.
    #[prost(string, repeated, tag = "5")]
    pub string_table: Vec<String>,
    /// Attributes of everything below a scope.
    #[prost(message, repeated, tag = "6")]
    pub attribute_table: Vec<KeyValueAndUnit>,
    /// Stacks.
    #[prost(message, repeated, tag = "7")]
    pub stack_table: Vec<Stack>,
}

/// The profiles of one resource.
#[derive(Clone, PartialEq, Message)]
pub struct ResourceProfiles {
    /// The profiled process.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// The profiles, grouped by the scope that made them.
    #[prost(message, repeated, tag = "2")]
    pub scope_profiles: Vec<ScopeProfiles>,
    /// The schema of the resource's attributes.
    #[prost(string, tag = "3")]
    pub schema_url: String,
}

/// The profiles of one scope.
#[derive(Clone, PartialEq, Message)]
pub struct ScopeProfiles {
    /// The library that made the profiles.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    /// The profiles.
    #[prost(message, repeated, tag = "2")]
    pub profiles: Vec<Profile>,
    /// The schema of the scope's and the profiles' attributes.
    #[prost(string, tag = "3")]
    pub schema_url: String,
}

/// Samples of one type, taken in one window of time.
#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    /// The type of the samples' values.
    #[prost(message, optional, tag = "1")]
    pub sample_type: Option<ValueType>,
    /// The samples.
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<Sample>,
    /// The start of the window, in nanoseconds since 1970.
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    /// The length of the window, in nanoseconds.
    #[prost(uint64, tag = "4")]
    pub duration_nano: u64,
    /// The quantity that is counted between two samples.
    #[prost(message, optional, tag = "5")]
    pub period_type: Option<ValueType>,
    /// The amount of `period_type` between two samples.
    #[prost(int64, tag = "6")]
    pub period: i64,
    /// A globally unique id: 16 bytes, or none.
    #[prost(bytes = "vec", tag = "7")]
    pub profile_id: Vec<u8>,
    /// The number of attributes that were dropped.
    #[prost(uint32, tag = "8")]
    pub dropped_attributes_count: u32,
    /// The format of `original_payload`: `jfr`, `pprof` or `linux_perf`.
    #[prost(string, tag = "9")]
    pub original_payload_format: String,
    /// The recording that this profile was converted from.
    #[prost(bytes = "vec", tag = "10")]
    pub original_payload: Vec<u8>,
    /// The profile's attributes.
    #[prost(int32, repeated, tag = "11")]
    pub attribute_indices: Vec<i32>,
}

/// All observations with one identity: stack, set of attributes, and link.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Sample {
    /// The stack.
    #[prost(int32, tag = "1")]
    pub stack_index: i32,
    /// The attributes, as a set.
    #[prost(int32, repeated, tag = "2")]
    pub attribute_indices: Vec<i32>,
    /// The span.
    #[prost(int32, tag = "3")]
    pub link_index: i32,
    /// One value, or one for each timestamp.
    #[prost(int64, repeated, tag = "4")]
    pub values: Vec<i64>,
    /// The times of the observations, in nanoseconds since 1970.
    #[prost(fixed64, repeated, tag = "5")]
    pub timestamps_unix_nano: Vec<u64>,
}

/// A loaded object.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Mapping {
    /// The object's first address, in the address space of the locations.
    #[prost(uint64, tag = "1")]
    pub memory_start: u64,
    /// One past the object's last address.
    #[prost(uint64, tag = "2")]
    pub memory_limit: u64,
    /// The offset in the file of the byte at `memory_start`.
    #[prost(uint64, tag = "3")]
    pub file_offset: u64,
    /// The object's file.
    #[prost(int32, tag = "4")]
    pub filename_strindex: i32,
    /// The object's attributes, which include a build-id.
    #[prost(int32, repeated, tag = "5")]
    pub attribute_indices: Vec<i32>,
}

/// A stack.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Stack {
    /// The stack's frames, leaf first.
    #[prost(int32, repeated, tag = "1")]
    pub location_indices: Vec<i32>,
}

/// A frame.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Location {
    /// The object that the address is in.
    #[prost(int32, tag = "1")]
    pub mapping_index: i32,
    /// The address, for frames that have one.
    #[prost(uint64, tag = "2")]
    pub address: u64,
    /// Functions and lines, innermost first; more than one if calls were inlined.
    #[prost(message, repeated, tag = "3")]
    pub lines: Vec<Line>,
    /// The frame's attributes.
    #[prost(int32, repeated, tag = "4")]
    pub attribute_indices: Vec<i32>,
}

/// A place in a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct Line {
    /// The function.
    #[prost(int32, tag = "1")]
    pub function_index: i32,
    /// The line, from 1; 0 if unknown.
    #[prost(int64, tag = "2")]
    pub line: i64,
    /// The column, from 1; 0 if unknown.
    #[prost(int64, tag = "3")]
    pub column: i64,
}

/// A function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct Function {
    /// The name for people.
    #[prost(int32, tag = "1")]
    pub name_strindex: i32,
    /// The name for the system: mangled, or with a descriptor.
    #[prost(int32, tag = "2")]
    pub system_name_strindex: i32,
    /// The source file.
    #[prost(int32, tag = "3")]
    pub filename_strindex: i32,
    /// The function's first line; 0 if unknown.
    #[prost(int64, tag = "4")]
    pub start_line: i64,
}

/// A span.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Link {
    /// 16 bytes, not all zero.
    #[prost(bytes = "vec", tag = "1")]
    pub trace_id: Vec<u8>,
    /// 8 bytes, not all zero.
    #[prost(bytes = "vec", tag = "2")]
    pub span_id: Vec<u8>,
}

/// A type of value and its unit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct ValueType {
    /// The type: `samples`, `cpu`.
    #[prost(int32, tag = "1")]
    pub type_strindex: i32,
    /// The unit, in UCUM or by name: `count`, `nanoseconds`.
    #[prost(int32, tag = "2")]
    pub unit_strindex: i32,
}

/// An attribute of the dictionary.
#[derive(Clone, PartialEq, Message)]
pub struct KeyValueAndUnit {
    /// The attribute's name.
    #[prost(int32, tag = "1")]
    pub key_strindex: i32,
    /// The attribute's value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
    /// The unit of the value.
    #[prost(int32, tag = "3")]
    pub unit_strindex: i32,
}

/// The observed entity: a process, a host, a container.
#[derive(Clone, PartialEq, Message)]
pub struct Resource {
    /// The entity's attributes, each key once.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
    /// The number of attributes that were dropped.
    #[prost(uint32, tag = "2")]
    pub dropped_attributes_count: u32,
    /// The entities, each with the attributes that identify it.
    #[prost(message, repeated, tag = "3")]
    pub entity_refs: Vec<EntityRef>,
}

/// The library that made the observations.
#[derive(Clone, PartialEq, Message)]
pub struct InstrumentationScope {
    /// The library's name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The library's version.
    #[prost(string, tag = "2")]
    pub version: String,
    /// The library's attributes, each key once.
    #[prost(message, repeated, tag = "3")]
    pub attributes: Vec<KeyValue>,
    /// The number of attributes that were dropped.
    #[prost(uint32, tag = "4")]
    pub dropped_attributes_count: u32,
}

/// An entity that a resource's attributes describe.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct EntityRef {
    /// The schema of the entity's attributes.
    #[prost(string, tag = "1")]
    pub schema_url: String,
    /// The entity's type: `service`, `host`.
    #[prost(string, tag = "2")]
    pub r#type: String,
    /// The keys of the attributes that identify the entity.
    #[prost(string, repeated, tag = "3")]
    pub id_keys: Vec<String>,
    /// The keys of the attributes that only describe the entity.
    #[prost(string, repeated, tag = "4")]
    pub description_keys: Vec<String>,
}

/// An inline attribute.
#[derive(Clone, PartialEq, Message)]
pub struct KeyValue {
    /// The attribute's name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The attribute's value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
    /// The attribute's name as a reference to the string table, in place of `key`. Few consumers resolve it.
    #[prost(int32, tag = "3")]
    pub key_strindex: i32,
}

/// A value of any type, or none.
#[derive(Clone, PartialEq, Message)]
pub struct AnyValue {
    /// The value.
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 5, 6, 7, 8")]
    pub value: Option<Value>,
}

/// The types of an [`AnyValue`].
#[derive(Clone, PartialEq, Oneof)]
pub enum Value {
    /// A string.
    #[prost(string, tag = "1")]
    StringValue(String),
    /// A boolean.
    #[prost(bool, tag = "2")]
    BoolValue(bool),
    /// An integer.
    #[prost(int64, tag = "3")]
    IntValue(i64),
    /// A floating-point number.
    #[prost(double, tag = "4")]
    DoubleValue(f64),
    /// A list.
    #[prost(message, tag = "5")]
    ArrayValue(ArrayValue),
    /// A map.
    #[prost(message, tag = "6")]
    KvlistValue(KeyValueList),
    /// Bytes.
    #[prost(bytes, tag = "7")]
    BytesValue(Vec<u8>),
    /// A reference to the string table. Few consumers resolve it.
    #[prost(int32, tag = "8")]
    StringValueStrindex(i32),
}

/// A list of values.
#[derive(Clone, PartialEq, Message)]
pub struct ArrayValue {
    /// The values.
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<AnyValue>,
}

/// A map of values.
#[derive(Clone, PartialEq, Message)]
pub struct KeyValueList {
    /// The entries, each key once.
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<KeyValue>,
}

/// A collector's answer to a request that it accepted.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct ExportProfilesServiceResponse {
    /// The part that the collector refused; absent or empty if it accepted everything.
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<ExportProfilesPartialSuccess>,
}

/// The refused part of a request that a collector otherwise accepted.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct ExportProfilesPartialSuccess {
    /// The number of profiles refused; 0 makes `error_message` a warning.
    #[prost(int64, tag = "1")]
    pub rejected_profiles: i64,
    /// The reason, in English.
    #[prost(string, tag = "2")]
    pub error_message: String,
}

/// `google.rpc.Status`: the body of a collector's HTTP answer if the status is not 200 (OTLP specification,
/// "OTLP/HTTP Response").
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Status {
    /// A gRPC code; HTTP servers need not set it.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// The error, in English.
    #[prost(string, tag = "2")]
    pub message: String,
    /// Further details, for programs.
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<StatusDetail>,
}

/// `google.protobuf.Any`: a message of any type.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct StatusDetail {
    /// The type of the message.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// The message, encoded.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}
