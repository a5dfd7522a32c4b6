//! Recordings of every JDK and of other profilers: each event, every field and stack of it, is what the JDK's own reader
//! says.

#[allow(clippy::duplicate_mod, reason = "other support modules of a test binary need it too")]
mod jfr_support;

use std::collections::HashMap;

use jfr_support::{counted_by_jdk, jdk_json, printed_by_jdk, recordings};
use otlpprof::jfr::recording::Chunks;
use serde_json::Value;

/// A thread of the recorded program, with characters of one, two, three and four bytes in its name.
const THREAD: &str = "computing-\u{e4}\u{20ac}\u{1f400}";

/// Every event of a recording that is whole, printed, in order.
fn printed(name: &str, bytes: &[u8]) -> Vec<String> {
    let mut events = Vec::new();
    for chunk in Chunks::new(bytes) {
        let chunk = chunk.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(chunk.problem(), None, "{name}");
        let mut all = chunk.contents().events();
        for event in &mut all {
            events.push(jdk_json::event(&event.unwrap()));
        }
        assert_eq!(all.of_unknown_type(), 0, "{name}");
    }
    events.sort_unstable();
    events
}

/// Fails with the first event that only one side has, from a little before where it differs.
fn assert_same(name: &str, ours: &[String], theirs: &[String]) {
    let differs = |&at: &usize| ours.get(at) != theirs.get(at);
    let Some(at) = (0..ours.len().max(theirs.len())).find(differs) else { return };
    let [our, their] = [ours, theirs].map(|events| events.get(at).map_or("", |event| event));
    let same = our.bytes().zip(their.bytes()).take_while(|(one, other)| one == other).count();
    let part = |event: &str| event.bytes().skip(same.saturating_sub(300)).take(600).collect::<Vec<_>>();
    panic!(
        "{name}: {} events, by the JDK {}\n\nours:   {}\n\ntheirs: {}",
        ours.len(),
        theirs.len(),
        String::from_utf8_lossy(&part(our)),
        String::from_utf8_lossy(&part(their)),
    );
}

fn compare(wanted: impl Fn(&str) -> bool) {
    for (name, bytes) in recordings(wanted) {
        let Some(mut theirs) = printed_by_jdk(name) else { return };
        for event in &mut theirs {
            // HotSpot writes names of threads as modified UTF-8, which the JDK does not read as such.
            *event = event.replace("computing-\u{e4}\u{20ac}\u{fffd}\u{fffd}", THREAD);
        }
        theirs.sort_unstable();
        assert_same(name, &printed(name, &bytes), &theirs);
        assert!(theirs.len() > 50, "{name}: {} events", theirs.len());
    }
}

#[test]
fn default_recordings_are_what_the_jdk_reads() {
    compare(|name| name.ends_with("-default"));
}

#[test]
fn recordings_with_stacks_of_all_kinds_are_what_the_jdk_reads() {
    compare(|name| name.ends_with("-rich"));
}

#[test]
fn recordings_of_other_profilers_are_what_the_jdk_reads() {
    compare(|name| name == "async-profiler");
}

/// The JDK counts these events but refuses to read them: the pool of strings is empty.
#[test]
fn datadogs_recordings_have_the_events_that_the_jdk_counts() {
    for (name, bytes) in recordings(|name| name == "datadog") {
        let Some(mut theirs) = counted_by_jdk(name) else { return };
        theirs.retain(|event_type, count| {
            *count > 0 && !["jdk.Metadata", "jdk.Checkpoint"].contains(&&**event_type)
        });
        let mut ours: HashMap<String, u64> = HashMap::new();
        for event in printed(name, &bytes) {
            let event: Value = serde_json::from_str(&event).unwrap();
            let values = &event["values"];
            let event_type = event["type"].as_str().unwrap();
            if event_type == "datadog.ExecutionSample" {
                let frames = values["stackTrace"]["frames"].as_array().unwrap();
                assert!(!frames.is_empty() && values["weight"].as_i64() > Some(0), "{event}");
                assert!(values["eventThread"]["osName"].is_string(), "{event}");
            }
            *ours.entry(event_type.to_owned()).or_default() += 1;
        }
        assert_eq!(ours, theirs);
        assert!(ours["datadog.ExecutionSample"] > 10, "{ours:?}");
    }
}

/// The JDK takes the times of all chunks from the first one's clock, so the single files are what to compare with.
#[test]
fn recordings_one_behind_the_other_are_read_as_each() {
    let singles = recordings(|name| name.starts_with("chunks."));
    let mut expected: Vec<String> = singles.iter().flat_map(|(name, bytes)| printed(name, bytes)).collect();
    expected.sort_unstable();
    for (name, bytes) in recordings(|name| name == "chunks") {
        assert_same(name, &printed(name, &bytes), &expected);
    }
}
