//! The messages of pprof's `profile.proto` (github.com/google/pprof, proto/profile.proto), field by field.
//!
//! A field without `_id` that refers to a text is an index into [`Profile::string_table`], whose element 0 is
//! empty. Ids begin at 1; 0 means none. `read` decodes each part when it is needed.

use prost::Message;

/// A whole file.
#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    /// The types of each sample's values.
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    /// The samples.
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    /// Loaded objects.
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    /// Frames.
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    /// Functions.
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    /// Texts.
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    /// The start, in nanoseconds since 1970.
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    /// The length, in nanoseconds.
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    /// The quantity between two samples.
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    /// The amount of that quantity; 0 if unknown.
    #[prost(int64, tag = "12")]
    pub period: i64,
    /// Remarks.
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    /// The name of the type that is shown if none is chosen.
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

/// The type and unit of values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct ValueType {
    /// The type, such as `cpu`.
    #[prost(int64, tag = "1")]
    pub quantity: i64,
    /// The unit.
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

/// A stack with labels and a value of each type.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Sample {
    /// The locations, leaf first.
    #[prost(uint64, repeated, tag = "1")]
    pub location_ids: Vec<u64>,
    /// The values, in the order of [`Profile::sample_type`].
    #[prost(int64, repeated, tag = "2")]
    pub values: Vec<i64>,
    /// The labels.
    #[prost(message, repeated, tag = "3")]
    pub labels: Vec<Label>,
}

/// A label: a text or a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Message)]
pub struct Label {
    /// The name.
    #[prost(int64, tag = "1")]
    pub key: i64,
    /// The text; 0 if the label is a number.
    #[prost(int64, tag = "2")]
    pub text: i64,
    /// The number.
    #[prost(int64, tag = "3")]
    pub number: i64,
    /// The unit of the number.
    #[prost(int64, tag = "4")]
    pub unit: i64,
}

/// A loaded object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct Mapping {
    /// The id.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The first address, in the address space of the locations.
    #[prost(uint64, tag = "2")]
    pub memory_start: u64,
    /// One past the last address.
    #[prost(uint64, tag = "3")]
    pub memory_limit: u64,
    /// The offset in the file of the byte at `memory_start`.
    #[prost(uint64, tag = "4")]
    pub file_offset: u64,
    /// The file.
    #[prost(int64, tag = "5")]
    pub filename: i64,
    /// The build-id, in hexadecimal.
    #[prost(int64, tag = "6")]
    pub build_id: i64,
    /// Whether all locations have functions. If not, readers resolve the addresses.
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    /// Whether all functions have files.
    #[prost(bool, tag = "8")]
    pub has_filenames: bool,
    /// Whether all lines have numbers.
    #[prost(bool, tag = "9")]
    pub has_line_numbers: bool,
    /// Whether inlined calls are included.
    #[prost(bool, tag = "10")]
    pub has_inline_frames: bool,
}

/// A frame.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Location {
    /// The id.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The object that the address is in.
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    /// The address.
    #[prost(uint64, tag = "3")]
    pub address: u64,
    /// Functions and lines, innermost first; more than one if calls were inlined.
    #[prost(message, repeated, tag = "4")]
    pub lines: Vec<Line>,
}

/// A place in a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct Line {
    /// The function.
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    /// The line; 0 if unknown.
    #[prost(int64, tag = "2")]
    pub line: i64,
    /// The column; 0 if unknown.
    #[prost(int64, tag = "3")]
    pub column: i64,
}

/// A function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct Function {
    /// The id.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The name for people.
    #[prost(int64, tag = "2")]
    pub name: i64,
    /// The name for the system.
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    /// The source file.
    #[prost(int64, tag = "4")]
    pub filename: i64,
    /// The first line; 0 if unknown.
    #[prost(int64, tag = "5")]
    pub start_line: i64,
}
