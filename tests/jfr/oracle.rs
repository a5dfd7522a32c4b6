//! Recordings of every JDK and of other profilers: every field and stack of each event, compared with the
//! JDK's own reader, or with JDK Mission Control if the JDK refuses the recording.

use std::collections::HashMap;
use std::path::Path;

use crate::jdk_reader::{counted_by_jdk, printed_by_jdk};
use crate::{jdk_json, jmc_json};
use otlpprof_jfr::recording::Chunks;
use otlpprof_jfr::values::Value as Jfr;
use otlpprof_testkit::jdk::everything;
use otlpprof_testkit::recordings::synthetic::Shape;
use otlpprof_testkit::recordings::{corpus, jfr_program, recordings, synthetic};
use otlpprof_testkit::skipped::not_tested;
use serde_json::Value;

/// The name of a thread in the recorded program. Its UTF-8 has characters of one, two, three and four bytes.
const THREAD: &str = "computing-\u{e4}\u{20ac}\u{1f400}";

/// Every event of a complete recording, printed, in order.
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

/// Fails with the first event that only one side has. Shows it from a little before the difference.
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

/// HotSpot writes thread names as modified UTF-8. Neither the JDK nor JMC decodes this form.
fn with_name_of_thread(theirs: &mut [String]) {
    for event in &mut *theirs {
        *event = event.replace("computing-\u{e4}\u{20ac}\u{fffd}\u{fffd}", THREAD);
    }
    theirs.sort_unstable();
}

/// The bytes of each chunk of a complete recording.
fn split_chunks(mut recording: &[u8]) -> Vec<&[u8]> {
    let mut chunks = Vec::new();
    while !recording.is_empty() {
        let length = u64::from_be_bytes(recording[8..16].try_into().unwrap());
        let (chunk, others) = recording.split_at(length.try_into().unwrap());
        recording = others;
        chunks.push(chunk);
    }
    chunks
}

/// Compares each chunk as a file of its own with the JDK's reading of that file, and the whole recording with
/// its chunks. Returns the least number of chunks of a recording.
///
/// A later chunk would be read differently by the JDK in one file with its predecessors. The JDK computes the
/// times of all chunks by the first chunk's clock. Where the types stay the same, the JDK also resolves the
/// ids that a chunk lacks by the previous chunk's last constant (JDK 25
/// `jdk.jfr.internal.consumer.ParserFactory.EventValueConstantParser`).
fn compare(wanted: impl Fn(&str) -> bool) -> usize {
    let mut least_chunks = usize::MAX;
    for (name, bytes) in recordings(wanted) {
        let mut expected = Vec::new();
        let chunks = split_chunks(&bytes);
        least_chunks = least_chunks.min(chunks.len());
        for chunk in chunks {
            let file = tempfile::Builder::new().suffix(".jfr").tempfile().unwrap();
            std::fs::write(file.path(), chunk).unwrap();
            let Some(mut theirs) = printed_by_jdk(file.path()) else { return least_chunks };
            with_name_of_thread(&mut theirs);
            let ours = printed(name, chunk);
            assert_same(name, &ours, &theirs);
            expected.extend(ours);
        }
        expected.sort_unstable();
        assert_same(name, &printed(name, &bytes), &expected);
        assert!(expected.len() > 50, "{name}: {} events", expected.len());
    }
    least_chunks
}

/// Whether the newest JDK has written a recording, or true if [`everything`] is: the JDK's reader needs
/// seconds for each of the larger recordings.
fn is_of_newest(name: &str) -> bool {
    let version = |name: &str| name.split('-').next()?.parse::<u32>().ok();
    everything() || version(name) == corpus().keys().filter_map(|name| version(name)).max()
}

#[test]
fn default_recordings_are_read_as_the_jdk_reads_them() {
    compare(|name| name.ends_with("-default"));
}

#[test]
fn recordings_with_stacks_of_all_kinds_are_read_as_the_jdk_reads_them() {
    compare(|name| name.ends_with("-rich") && is_of_newest(name));
}

#[test]
fn deep_stacks_in_several_chunks_are_read_as_the_jdk_reads_them() {
    compare(|name| name.ends_with("-deep") && is_of_newest(name));
    for (name, bytes) in recordings(|name| name.ends_with("-deep")) {
        let chunks = Chunks::new(&bytes).map(Result::unwrap).collect::<Vec<_>>();
        assert!(chunks.len() >= 3, "{name}: {}", chunks.len());
        let (mut deep, mut traced) = (0, 0);
        for event in chunks.iter().flat_map(|chunk| chunk.contents().events()) {
            let event = event.unwrap();
            let values = event.values();
            let stack = values.get("stackTrace").and_then(|stack| stack.as_struct(values.chunk()));
            let Some(stack) = stack else { continue };
            let Some(Jfr::Array(frames)) = stack.get("frames") else { continue };
            let is_truncated = matches!(stack.get("truncated"), Some(Jfr::Boolean(true)));
            deep += usize::from(frames.values().count() == 512 && is_truncated);
            traced += usize::from(&*event.type_of().name == "jdk.MethodTrace");
        }
        assert!(deep >= 3, "{name}: {deep}");
        // The event of JEP 520.
        let version: u32 = name.split('-').next().unwrap().parse().unwrap();
        assert_eq!(traced > 0, version >= 25, "{name}: {traced}");
    }
}

#[test]
fn a_scrubbed_recording_is_read_as_the_jdk_reads_it() {
    compare(|name| name == "scrubbed");
}

#[test]
fn a_recordings_chunks_are_read_alone_as_together() {
    let parts = recordings(|name| name.starts_with("disassembled_"));
    let mut expected: Vec<String> = parts.iter().flat_map(|(name, bytes)| printed(name, bytes)).collect();
    expected.sort_unstable();
    for (name, bytes) in recordings(|name| name.starts_with("25-") && name.ends_with("-deep")) {
        assert_eq!(parts.len(), Chunks::new(&bytes).count(), "{name}");
        assert_same(name, &printed(name, &bytes), &expected);
    }
}

#[test]
fn recordings_of_other_profilers_are_read_as_the_jdk_reads_them() {
    compare(|name| ["async-profiler", "async-profiler-both"].contains(&name));
}

#[test]
fn each_chunk_of_other_profilers_is_read_as_the_jdk_reads_it() {
    let chunks = compare(|name| ["async-profiler-chunks", "async-profiler-sync"].contains(&name));
    assert!(chunks > 1, "{chunks}");
}

/// The JDK counts these events but refuses to read them, since the string pool is empty.
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

/// Each event as JMC reads it. `None`, with a report that the test is skipped, if JMC cannot run.
fn read_by_jmc(recording: &Path) -> Option<Vec<String>> {
    let java = jfr_program().map(|jfr| jfr.with_file_name("java")).ok_or("no JDK to run JMC with".to_owned());
    match java.and_then(|java| jmc_json::printed_by_jmc(&java, recording)) {
        Ok(mut events) => {
            with_name_of_thread(&mut events);
            Some(events)
        }
        Err(reason) => {
            not_tested(&reason);
            None
        }
    }
}

/// Each event of a complete recording, in the format of [`read_by_jmc`].
fn of_jmc(bytes: &[u8]) -> Vec<String> {
    let chunks = Chunks::new(bytes).map(Result::unwrap).collect::<Vec<_>>();
    let events = chunks.iter().flat_map(|chunk| chunk.contents().events());
    let mut events: Vec<_> = events.map(|event| jmc_json::event(&event.unwrap())).collect();
    events.sort_unstable();
    events
}

/// JDK Mission Control reads these recordings, which the JDK refuses.
#[test]
fn datadogs_recordings_are_read_as_jmc_reads_them() {
    for (name, bytes) in recordings(|name| name == "datadog") {
        let Some(theirs) = read_by_jmc(&corpus()[name]) else { return };
        assert_same(name, &of_jmc(&bytes), &theirs);
        let has = |text: &str| theirs.iter().filter(|event| event.contains(text)).count();
        for of_some in ["datadog.ExecutionSample", "datadog.ObjectSample", "rest_endpoint", "\"Native\""] {
            assert!(has(of_some) > 10, "{name}: {of_some}");
        }
    }
}

/// No JVM writes uncompressed integers. The JDK takes all integers as compressed, whatever the header says
/// (JDK 25 `jdk.jfr.internal.consumer.RecordingInput.readInt`). JMC reads both encodings.
#[test]
fn synthetic_recordings_are_read_as_others_read_them_in_both_integer_encodings() {
    let mut read = Vec::new();
    for compressed in [true, false] {
        let label = if compressed { "compressed" } else { "uncompressed" };
        let shape =
            Shape { events: 60, depth: 9, repeated_percent: 50, contexts: 4, remote_frames: 2, compressed };
        let bytes = synthetic::recording(shape);
        assert_eq!(bytes[67] & 1, u8::from(compressed), "{label}");
        let file = tempfile::Builder::new().suffix(".jfr").tempfile().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let ours = printed(label, &bytes);
        if compressed {
            let Some(theirs) = printed_by_jdk(file.path()) else { return };
            assert_same(label, &ours, &theirs);
        }
        if let Some(theirs) = read_by_jmc(file.path()) {
            assert_same(label, &of_jmc(&bytes), &theirs);
        }
        // The last event describes the library of the remote frames.
        assert_eq!(ours.len(), 61, "{label}");
        read.push((bytes.len(), ours));
    }
    assert!(read[0].0 < read[1].0, "uncompressed, they take more");
    assert_same("compressed and not", &read[0].1, &read[1].1);
}

/// The single files are the reference, since the JDK computes the times of all chunks by the first chunk's
/// clock.
#[test]
fn concatenated_recordings_are_read_as_single_ones() {
    let singles = recordings(|name| name.starts_with("chunks."));
    let mut expected: Vec<String> = singles.iter().flat_map(|(name, bytes)| printed(name, bytes)).collect();
    expected.sort_unstable();
    for (name, bytes) in recordings(|name| name == "chunks") {
        assert_same(name, &printed(name, &bytes), &expected);
    }
}
