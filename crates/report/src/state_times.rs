//! The time of the last state of each process, such as its live heap: states are never added up, and a reader
//! in bounded memory must know before it reads them which ones count.

use std::collections::HashMap;
use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::encoded_profiles::EncodedResource;
use otlpprof_otlp::lookup::DictionaryTables as _;

use super::measure::Measure;
use super::selection::text_of;

/// The times of last states.
#[derive(Debug, Default)]
pub struct StateTimes {
    hasher: RandomState,
    /// By measure and process: the start of the last profile, in nanoseconds since 1970.
    last_ns: HashMap<(Measure, u64), u64>,
}

impl StateTimes {
    /// A number for the process of a resource. Equal resources are one process.
    pub fn process(&self, tables: EncodedTables<'_>, resource: EncodedResource<'_>) -> u64 {
        self.process_of(&resource_attributes(tables, resource))
    }

    /// As [`StateTimes::process`], for the attributes of a resource, sorted.
    pub fn process_of(&self, attributes: &[(String, String)]) -> u64 {
        self.hasher.hash_one(attributes)
    }

    /// Notes a profile, whose measure is a snapshot.
    pub fn note(&mut self, measure: &Measure, process: u64, unix_ns: u64) {
        let last_ns = self.last_ns.entry((measure.clone(), process)).or_default();
        *last_ns = unix_ns.max(*last_ns);
    }

    /// Whether a profile counts: a state does only if no later one of its process was noted.
    pub fn counts(&self, measure: &Measure, process: u64, unix_ns: u64) -> bool {
        let last_ns = self.last_ns.get(&(measure.clone(), process));
        last_ns.is_none_or(|&last_ns| unix_ns >= last_ns)
    }
}

/// The attributes of a resource as text, sorted.
pub fn resource_attributes(
    tables: EncodedTables<'_>,
    resource: EncodedResource<'_>,
) -> Vec<(String, String)> {
    let attributes = resource.resource().unwrap_or_default().attributes;
    let pairs = attributes.iter().map(|attribute| {
        let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
        (tables.key(attribute).to_owned(), text_of(tables, value).into_owned())
    });
    let mut pairs: Vec<_> = pairs.collect();
    pairs.sort_unstable();
    pairs
}
