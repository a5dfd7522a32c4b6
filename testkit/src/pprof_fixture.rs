//! Profiles in pprof's format to test with, written from the fields of `profile.proto`, independently of the
//! crate's own reader.

#![expect(missing_docs, reason = "profile.proto describes the fields")]

use prost::Message;

/// `perftools.profiles.Profile`.
#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    pub period: i64,
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct ValueType {
    #[prost(int64, tag = "1")]
    pub r#type: i64,
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub label: Vec<Label>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Label {
    #[prost(int64, tag = "1")]
    pub key: i64,
    #[prost(int64, tag = "2")]
    pub str: i64,
    #[prost(int64, tag = "3")]
    pub num: i64,
    #[prost(int64, tag = "4")]
    pub num_unit: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Mapping {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub memory_start: u64,
    #[prost(uint64, tag = "3")]
    pub memory_limit: u64,
    #[prost(uint64, tag = "4")]
    pub file_offset: u64,
    #[prost(int64, tag = "5")]
    pub filename: i64,
    #[prost(int64, tag = "6")]
    pub build_id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Location {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub address: u64,
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Line {
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    #[prost(int64, tag = "2")]
    pub line: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Function {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(int64, tag = "2")]
    pub name: i64,
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    #[prost(int64, tag = "4")]
    pub filename: i64,
    #[prost(int64, tag = "5")]
    pub start_line: i64,
}

/// The start of [`valid`] in ns since 1970: 2023-11-14T22:13:20Z.
pub const TIME: i64 = 1_700_000_000_000_000_000;

impl Profile {
    /// The index of a string.
    pub fn string(&mut self, text: &str) -> i64 {
        let known = self.string_table.iter().position(|known| known == text);
        let index = known.unwrap_or_else(|| {
            self.string_table.push(text.to_owned());
            self.string_table.len() - 1
        });
        i64::try_from(index).unwrap()
    }

    /// A sample or period type.
    pub fn value_type(&mut self, text: &str, unit: &str) -> ValueType {
        ValueType { r#type: self.string(text), unit: self.string(unit) }
    }

    /// The id of a function.
    pub fn function(&mut self, name: &str, file: &str) -> u64 {
        let id = self.function.len() as u64 + 1;
        let (name, filename) = (self.string(name), self.string(file));
        self.function.push(Function { id, name, system_name: name, filename, start_line: 1 });
        id
    }

    /// The id of a location with these functions, innermost first, each with its line.
    pub fn location(&mut self, mapping_id: u64, address: u64, lines: &[(u64, i64)]) -> u64 {
        let id = self.location.len() as u64 + 1;
        let line = lines.iter().map(|&(function_id, line)| Line { function_id, line }).collect();
        self.location.push(Location { id, mapping_id, address, line });
        id
    }

    /// A label whose value is a string.
    pub fn text_label(&mut self, key: &str, text: &str) -> Label {
        Label { key: self.string(key), str: self.string(text), ..Label::default() }
    }
}

/// A profile of 10 s with two sample types, as Go's CPU profile has them: `main` calls `compute`, which
/// `spin` is inlined into; `spin` takes 30 periods of 10 ms and a place without symbols 12.
pub fn valid() -> Profile {
    let mut profile = Profile::default();
    profile.string("");
    profile.sample_type =
        vec![profile.value_type("samples", "count"), profile.value_type("cpu", "nanoseconds")];
    profile.period_type = Some(profile.value_type("cpu", "nanoseconds"));
    (profile.period, profile.time_nanos, profile.duration_nanos) = (10_000_000, TIME, 10_000_000_000);
    let comment = profile.string("made for a test");
    profile.comment = vec![comment];
    let (filename, build_id) = (profile.string("/usr/bin/shop"), profile.string("0123456789abcdef"));
    profile.mapping = vec![Mapping {
        id: 1,
        memory_start: 0x40_0000,
        memory_limit: 0x50_0000,
        file_offset: 0x1000,
        filename,
        build_id,
    }];
    let [main, compute, spin] =
        ["main.main", "main.compute", "main.spin"].map(|name| profile.function(name, "main.go"));
    let main = profile.location(1, 0x40_0100, &[(main, 7)]);
    let compute = profile.location(1, 0x40_0200, &[(spin, 30), (compute, 20)]);
    let unknown = profile.location(1, 0x40_0300, &[]);
    let (cart, pay) = (profile.text_label("endpoint", "/cart"), profile.text_label("endpoint", "/pay"));
    let thread = profile.text_label("thread", "worker <1>");
    let size =
        Label { key: profile.string("request_size"), num: 4096, num_unit: profile.string("bytes"), str: 0 };
    let sample = |location_id: &[u64], count: i64, label: &[Label]| Sample {
        location_id: location_id.to_vec(),
        value: vec![count, count * 10_000_000],
        label: label.to_vec(),
    };
    profile.sample = vec![
        sample(&[compute, main], 25, &[cart, size]),
        sample(&[compute, main], 5, &[pay, thread]),
        sample(&[unknown, main], 12, &[]),
    ];
    profile
}
