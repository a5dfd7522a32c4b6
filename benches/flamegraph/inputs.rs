//! Profiles of random stacks, in OTLP and as collapsed stacks.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use otlpprof_otlp::wire::{self, *};
use prost::Message as _;

use super::random_stacks::{Function, Numbers, Stacks};

const PERIOD_NS: i64 = 10_000_000;
/// The length of a message's profile in nanoseconds.
const INTERVAL_NS: u64 = 10_000_000_000;
/// The start of the first profile in nanoseconds since 1970.
const START_NS: u64 = 1_764_000_000_000_000_000;

const ENDPOINTS: usize = 40;
const THREADS: usize = 64;
const TIMES: usize = 360;

/// The dictionary of a message, as it grows.
struct Tables<'f> {
    functions: &'f [Function],
    dictionary: ProfilesDictionary,
    strings: HashMap<String, i32>,
    attributes: HashMap<(&'static str, String), i32>,
    locations: HashMap<u32, i32>,
    stacks: HashMap<u32, i32>,
}

impl<'f> Tables<'f> {
    fn new(functions: &'f [Function]) -> Self {
        let dictionary = ProfilesDictionary {
            mapping_table: vec![Mapping::default()],
            location_table: vec![Location::default()],
            function_table: vec![wire::Function::default()],
            link_table: vec![Link::default()],
            string_table: vec![String::new()],
            attribute_table: vec![KeyValueAndUnit::default()],
            stack_table: vec![Stack::default()],
        };
        let strings = HashMap::from([(String::new(), 0)]);
        let (attributes, locations, stacks) = Default::default();
        Self { functions, dictionary, strings, attributes, locations, stacks }
    }

    fn string(&mut self, text: &str) -> i32 {
        if let Some(&known) = self.strings.get(text) {
            return known;
        }
        let index = push(&mut self.dictionary.string_table, text.to_owned());
        self.strings.insert(text.to_owned(), index);
        index
    }

    fn value_type(&mut self, name: &str, unit: &str) -> Option<ValueType> {
        Some(ValueType { type_strindex: self.string(name), unit_strindex: self.string(unit) })
    }

    fn attribute(&mut self, key: &'static str, value: &str) -> i32 {
        let pair = (key, value.to_owned());
        if let Some(&known) = self.attributes.get(&pair) {
            return known;
        }
        let (key_strindex, value) = (self.string(key), Some(Value::StringValue(value.to_owned())));
        let attribute =
            KeyValueAndUnit { key_strindex, value: Some(AnyValue { value }), ..Default::default() };
        let index = push(&mut self.dictionary.attribute_table, attribute);
        self.attributes.insert(pair, index);
        index
    }

    fn location(&mut self, number: u32) -> i32 {
        if let Some(&known) = self.locations.get(&number) {
            return known;
        }
        let function = &self.functions[number as usize];
        let entry = wire::Function {
            name_strindex: self.string(&function.name),
            filename_strindex: self.string(&function.file),
            ..Default::default()
        };
        let function_index = push(&mut self.dictionary.function_table, entry);
        let location = Location {
            lines: vec![Line { function_index, line: 1, ..Default::default() }],
            attribute_indices: vec![self.attribute("profile.frame.type", function.kind)],
            ..Default::default()
        };
        let index = push(&mut self.dictionary.location_table, location);
        self.locations.insert(number, index);
        index
    }

    fn stack(&mut self, stacks: &Stacks, leaf: u32) -> i32 {
        if let Some(&known) = self.stacks.get(&leaf) {
            return known;
        }
        let location_indices = stacks.stack(leaf).map(|function| self.location(function)).collect();
        let index = push(&mut self.dictionary.stack_table, Stack { location_indices });
        self.stacks.insert(leaf, index);
        index
    }

    /// The message with one profile of CPU time, in length-prefixed form.
    fn message(mut self, samples: Vec<Sample>, time_unix_nano: u64) -> Vec<u8> {
        let profile = Profile {
            sample_type: self.value_type("samples", "count"),
            period_type: self.value_type("cpu", "nanoseconds"),
            period: PERIOD_NS,
            time_unix_nano,
            duration_nano: INTERVAL_NS,
            samples,
            ..Default::default()
        };
        let scope = ScopeProfiles { profiles: vec![profile], ..Default::default() };
        let resource = ResourceProfiles { scope_profiles: vec![scope], ..Default::default() };
        let data = ProfilesData { resource_profiles: vec![resource], dictionary: Some(self.dictionary) };
        let bytes = data.encode_to_vec();
        let length = u32::try_from(bytes.len()).expect("a message below 4 GiB");
        [&length.to_be_bytes()[..], &bytes].concat()
    }
}

fn push<T>(table: &mut Vec<T>, entry: T) -> i32 {
    table.push(entry);
    i32::try_from(table.len() - 1).expect("a small table")
}

/// The number of periods of a sample: mostly few.
fn periods(numbers: &mut Numbers) -> i64 {
    1 + numbers.below(20, 4.0) as i64
}

/// Writes each stack with one sample: one message of OTLP, and collapsed stacks of the same values.
pub(crate) fn write_deep(
    stacks: &Stacks,
    functions: &[Function],
    otlp: &Path,
    collapsed: &Path,
) -> io::Result<()> {
    let mut numbers = Numbers::new(11);
    let mut tables = Tables::new(functions);
    let mut lines = BufWriter::new(File::create(collapsed)?);
    let mut samples = Vec::with_capacity(stacks.leaves.len());
    let mut names = Vec::new();
    for &leaf in &stacks.leaves {
        let value = periods(&mut numbers);
        let stack_index = tables.stack(stacks, leaf);
        samples.push(Sample { stack_index, values: vec![value], ..Default::default() });
        names.clear();
        names.extend(stacks.stack(leaf).map(|number| &*functions[number as usize].name));
        names.reverse();
        writeln!(lines, "{} {value}", names.join(";"))?;
    }
    lines.flush()?;
    std::fs::write(otlp, tables.message(samples, START_NS))
}

/// Writes each stack with ten samples of random endpoints, threads and times: a message for each time.
pub(crate) fn write_labels(stacks: &Stacks, functions: &[Function], otlp: &Path) -> io::Result<()> {
    let mut numbers = Numbers::new(13);
    let mut of_times = vec![Vec::new(); TIMES];
    for &leaf in &stacks.leaves {
        for _ in 0..10 {
            let labels = numbers.below(ENDPOINTS * THREADS, 1.5);
            let value = periods(&mut numbers);
            of_times[numbers.below(TIMES, 1.0)].push((leaf, labels, value));
        }
    }
    let mut out = BufWriter::new(File::create(otlp)?);
    for (time, rows) in (0..).zip(of_times) {
        let mut tables = Tables::new(functions);
        let samples = rows.into_iter().map(|(leaf, labels, value)| Sample {
            stack_index: tables.stack(stacks, leaf),
            attribute_indices: vec![
                tables.attribute("rest_endpoint", &format!("/api/resource-{}", labels / THREADS)),
                tables.attribute("thread.name", &format!("http-nio-8080-exec-{}", labels % THREADS)),
            ],
            values: vec![value],
            ..Default::default()
        });
        let samples = samples.collect();
        out.write_all(&tables.message(samples, START_NS + time * INTERVAL_NS))?;
    }
    out.flush()
}
