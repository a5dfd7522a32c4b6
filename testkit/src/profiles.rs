//! Reads and checks the files that the agent wrote.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use otlpprof_otlp::lookup::{DictionaryTables as _, Lookup};
use otlpprof_otlp::read::{self, Message};
use otlpprof_otlp::validate::rules::RuleId;
use otlpprof_otlp::validate::validate;
use otlpprof_otlp::wire::Value;

use crate::profcheck::assert_passes;

/// The most findings of each rule that a failure shows.
const SHOWN: usize = 3;

/// The warnings that a file of the agent may cause, with the reason for each.
const ALLOWED: [(RuleId, &str); 2] = [
    (
        RuleId::HtlhashMissing,
        "the file of an object may be gone or replaced when it is to be hashed, and the vDSO has none",
    ),
    (
        RuleId::ValuesBesideTimestamps,
        "with `timestamps`, what has an amount, such as bytes, has one beside each time",
    ),
];

/// Checks a file against every rule of OTLP profiles, by our validator and by OpenTelemetry's checker if it
/// is available.
///
/// # Panics
/// If the file breaks a rule, or cannot be read.
#[track_caller]
pub fn assert_valid(label: &str, file: &Path) {
    let bytes = fs::read(file).unwrap();
    assert_valid_bytes(&format!("{label}: {}", file.display()), &bytes);
}

/// Checks a file's bytes like [`assert_valid`].
#[track_caller]
pub fn assert_valid_bytes(label: &str, bytes: &[u8]) {
    let report = validate(bytes, SHOWN);
    let allowed = |rule: RuleId| ALLOWED.iter().any(|(allowed, _)| *allowed == rule);
    let broken: Vec<_> = report.breaches().filter(|(rule, _)| !allowed(*rule)).collect();
    assert!(broken.is_empty(), "{label}: {broken:#?}");
    assert_passes(label, bytes);
}

/// The messages of a file.
///
/// # Panics
/// If a message cannot be read.
#[track_caller]
pub fn messages(file: &Path) -> Vec<Message> {
    let bytes = fs::read(file).unwrap();
    read::read(&bytes).collect::<Result<_, _>>().unwrap_or_else(|e| panic!("{}: {e:?}", file.display()))
}

/// The messages in a file so far. The file need not exist.
pub fn messages_if_any(file: &Path) -> Vec<Message> {
    if file.is_file() { messages(file) } else { Vec::new() }
}

/// The types of all profiles.
pub fn profile_types(messages: &[Message]) -> BTreeSet<String> {
    let types = messages.iter().flat_map(|message| {
        let lookup = Lookup::new(&message.data);
        let profiles = &message.data.resource_profiles[0].scope_profiles[0].profiles;
        profiles.iter().filter_map(move |profile| {
            lookup.attribute_text(&profile.attribute_indices, "profile.type").map(str::to_owned)
        })
    });
    types.collect()
}

/// The value of an attribute of a message's first profile.
pub fn profile_attribute(message: &Message, key: &str) -> Option<Value> {
    let lookup = Lookup::new(&message.data);
    let profile = &message.data.resource_profiles[0].scope_profiles[0].profiles[0];
    let (_, value) = lookup.attributes(&profile.attribute_indices).find(|(found, _)| *found == key)?;
    value.cloned()
}

/// The length of the interval of a message's first profile.
pub fn duration_ns(message: &Message) -> u64 {
    message.data.resource_profiles[0].scope_profiles[0].profiles[0].duration_nano
}

/// A counter of a message's first profile. 0 if the profile does not have it.
#[track_caller]
pub fn profile_counter(message: &Message, key: &str) -> i64 {
    match profile_attribute(message, &format!("otlpprof.{key}")) {
        None => 0,
        Some(Value::IntValue(count)) => count,
        Some(other) => panic!("{key}: {other:?}"),
    }
}

/// The sum of a counter over all messages. Each message counts the events of its interval.
pub fn counted_in_profiles(messages: &[Message], key: &str) -> i64 {
    messages.iter().map(|message| profile_counter(message, key)).sum()
}
