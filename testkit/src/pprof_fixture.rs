//! Profiles in pprof's format to test with, written from the fields of `profile.proto`, independently of the
//! crate's own reader.

#![allow(dead_code, reason = "not every test binary uses all of it")]

use prost::Message;

/// `perftools.profiles.Profile`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Profile {
    #[prost(message, repeated, tag = "1")]
    pub(crate) sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub(crate) string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    pub(crate) time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub(crate) duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub(crate) period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    pub(crate) period: i64,
    #[prost(int64, repeated, tag = "13")]
    pub(crate) comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    pub(crate) default_sample_type: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(crate) r#type: i64,
    #[prost(int64, tag = "2")]
    pub(crate) unit: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    pub(crate) location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) label: Vec<Label>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Label {
    #[prost(int64, tag = "1")]
    pub(crate) key: i64,
    #[prost(int64, tag = "2")]
    pub(crate) str: i64,
    #[prost(int64, tag = "3")]
    pub(crate) num: i64,
    #[prost(int64, tag = "4")]
    pub(crate) num_unit: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Mapping {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) memory_start: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) memory_limit: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) file_offset: u64,
    #[prost(int64, tag = "5")]
    pub(crate) filename: i64,
    #[prost(int64, tag = "6")]
    pub(crate) build_id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Location {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) address: u64,
    #[prost(message, repeated, tag = "4")]
    pub(crate) line: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Line {
    #[prost(uint64, tag = "1")]
    pub(crate) function_id: u64,
    #[prost(int64, tag = "2")]
    pub(crate) line: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Function {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(int64, tag = "2")]
    pub(crate) name: i64,
    #[prost(int64, tag = "3")]
    pub(crate) system_name: i64,
    #[prost(int64, tag = "4")]
    pub(crate) filename: i64,
    #[prost(int64, tag = "5")]
    pub(crate) start_line: i64,
}

/// The start of [`valid`] in ns since 1970: 2023-11-14T22:13:20Z.
pub(crate) const TIME: i64 = 1_700_000_000_000_000_000;

impl Profile {
    /// The index of a string.
    pub(crate) fn string(&mut self, text: &str) -> i64 {
        let known = self.string_table.iter().position(|known| known == text);
        let index = known.unwrap_or_else(|| {
            self.string_table.push(text.to_owned());
            self.string_table.len() - 1
        });
        i64::try_from(index).unwrap()
    }

    pub(crate) fn value_type(&mut self, text: &str, unit: &str) -> ValueType {
        ValueType { r#type: self.string(text), unit: self.string(unit) }
    }

    /// The id of a function.
    pub(crate) fn function(&mut self, name: &str, file: &str) -> u64 {
        let id = self.function.len() as u64 + 1;
        let (name, filename) = (self.string(name), self.string(file));
        self.function.push(Function { id, name, system_name: name, filename, start_line: 1 });
        id
    }

    /// The id of a location with these functions, innermost first, each with its line.
    pub(crate) fn location(&mut self, mapping_id: u64, address: u64, lines: &[(u64, i64)]) -> u64 {
        let id = self.location.len() as u64 + 1;
        let line = lines.iter().map(|&(function_id, line)| Line { function_id, line }).collect();
        self.location.push(Location { id, mapping_id, address, line });
        id
    }

    pub(crate) fn text_label(&mut self, key: &str, text: &str) -> Label {
        Label { key: self.string(key), str: self.string(text), ..Label::default() }
    }
}

/// A profile of 10 s with two sample types, as Go's CPU profile has them: `main` calls `compute`, which
/// `spin` is inlined into; `spin` takes 30 periods of 10 ms and a place without symbols 12.
pub(crate) fn valid() -> Profile {
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
