//! Conversion of events that only some writers have: samples, values, contexts and links.

use otlpprof_convert::{ConvertOptions, EventCount, JfrToOtlp, Links};
use otlpprof_otlp::wire::{Profile, ProfilesData, Sample};
use otlpprof_otlp::{EncodeOptions, encode};
use otlpprof_testkit::commands::{printed_by_otlpprof, text};
use otlpprof_testkit::recordings::converted::{attribute, profiles, string};
use otlpprof_testkit::recordings::synthetic::{
    ATTRIBUTE, BOOLEAN, CLASS, CONSTANT_POOLS, FieldOf, INT, LONG, STACK_TRACE, START_NANOS, Shape, THREAD,
    THREAD_STATE, TypeOf, VALUE_TYPES, Writer, crafted, pools_of_constants, recording,
};
use prost::Message as _;

const SHAPE: Shape =
    Shape { events: 1, depth: 4, repeated_percent: 0, contexts: 3, remote_frames: 0, compressed: true };

const EVENT: i64 = 200;
const START: FieldOf = ("startTime", LONG, false, false);
const DURATION: FieldOf = ("duration", LONG, false, false);
const EVENT_THREAD: FieldOf = ("eventThread", THREAD, true, false);
const STACK: FieldOf = ("stackTrace", STACK_TRACE, true, false);
const WEIGHT: FieldOf = ("weight", LONG, false, false);

/// The result of converting a recording with events of one type. An event is given by its fields' numbers.
fn converted(
    name: &'static str,
    fields: &'static [FieldOf],
    events: &[&[i64]],
) -> (ProfilesData, EventCount, u64) {
    encoded(name, fields, events, &EncodeOptions::default())
}

/// A recording with events of one type. An event is given by its fields' numbers.
fn recorded(name: &'static str, fields: &'static [FieldOf], events: &[&[i64]]) -> Vec<u8> {
    let event: TypeOf = (EVENT, name, "jdk.jfr.Event", fields);
    let write = |out: &mut Writer| {
        for event in events {
            assert_eq!(event.len(), fields.len());
            out.event(EVENT, |out| event.iter().for_each(|&field| out.integer(field)));
        }
    };
    let types = [VALUE_TYPES, &[event]].concat();
    crafted(&types, write, CONSTANT_POOLS, |out| pools_of_constants(out, SHAPE, 3))
}

fn encoded(
    name: &'static str,
    fields: &'static [FieldOf],
    events: &[&[i64]],
    options: &EncodeOptions,
) -> (ProfilesData, EventCount, u64) {
    let recording = recorded(name, fields, events);
    let keep = ConvertOptions { times: options.timestamps, ..ConvertOptions::default() };
    let mut converter = JfrToOtlp::new(keep);
    converter.add(&recording).unwrap();
    let (of, count) = converter.counts().next().unwrap();
    assert_eq!(of, name);
    let lost = converter.lost_samples();
    let data = ProfilesData::decode(&*encode(&converter.convert(), options)).unwrap();
    (data, count, lost)
}

/// The profile with this sample type.
fn profile<'d>(data: &'d ProfilesData, sample_type: &str) -> &'d Profile {
    let is =
        |profile: &&Profile| string(data, profile.sample_type.as_ref().unwrap().type_strindex) == sample_type;
    let mut found = profiles(data).filter(is);
    let profile = found.next().unwrap_or_else(|| panic!("no profile of {sample_type}"));
    assert!(found.next().is_none(), "two profiles of {sample_type}");
    profile
}

fn sum(data: &ProfilesData, sample_type: &str) -> i64 {
    profile(data, sample_type).samples.iter().flat_map(|sample| &sample.values).sum()
}

fn sample_attribute(data: &ProfilesData, sample: &Sample, key: &str) -> Option<String> {
    attribute(data, &sample.attribute_indices, key)
}

#[test]
fn traced_methods_become_calls_and_latencies() {
    let fields = &[START, DURATION, EVENT_THREAD, STACK];
    let (data, count, _) = converted("jdk.MethodTrace", fields, &[&[10, 700, 1, 1], &[20, 300, 2, 2]]);
    assert_eq!(count.converted, 2);
    assert_eq!((sum(&data, "calls"), sum(&data, "latency")), (2, 1_000));
}

/// No recording of the corpus has such an event.
#[test]
fn pinned_virtual_threads_become_the_time_that_they_kept_their_carrier() {
    let fields = &[START, DURATION, EVENT_THREAD, STACK];
    let (data, count, _) =
        converted("jdk.VirtualThreadPinned", fields, &[&[10, 700, 1, 1], &[20, 300, 2, 2]]);
    assert_eq!((count.converted, sum(&data, "delay")), (2, 1_000));
    let of = attribute(&data, &profile(&data, "delay").attribute_indices, "profile.type");
    assert_eq!(of.as_deref(), Some("virtual-thread-pinned"));
}

#[test]
fn native_locks_are_a_kind_of_contention() {
    let fields = &[START, DURATION, EVENT_THREAD, STACK];
    let (data, ..) = converted("profiler.NativeLock", fields, &[&[10, 700, 1, 1], &[20, 300, 1, 1]]);
    assert_eq!((sum(&data, "contentions"), sum(&data, "delay")), (2, 1_000));
    for sample in profiles(&data).flat_map(|profile| &profile.samples) {
        assert_eq!(sample_attribute(&data, sample, "otlpprof.lock.kind").as_deref(), Some("native"));
    }
}

#[test]
fn native_sockets_weigh_time_and_bytes() {
    const BYTES: FieldOf = ("bytesTransferred", LONG, false, false);
    let fields = &[START, DURATION, EVENT_THREAD, STACK, BYTES, WEIGHT];
    let events: [&[i64]; 2] = [&[10, 700, 1, 1, 50, 3], &[20, 300, 1, 1, 8, 1]];
    let (data, ..) = converted("datadog.NativeSocketEvent", fields, &events);
    assert_eq!((sum(&data, "delay"), sum(&data, "io_space")), (3 * 700 + 300, 3 * 50 + 8));
}

#[test]
fn native_allocations_weigh_objects_and_bytes() {
    const SIZE: FieldOf = ("size", LONG, false, false);
    let fields = &[START, EVENT_THREAD, STACK, SIZE, WEIGHT];
    let events: [&[i64]; 2] = [&[10, 1, 1, 100, 7], &[20, 1, 1, 64, 2]];
    let (data, ..) = converted("datadog.NativeMemoryAllocation", fields, &events);
    assert_eq!((sum(&data, "alloc_objects"), sum(&data, "alloc_space")), (9, 700 + 128));
}

#[test]
fn lost_samples_are_reported_and_are_no_samples() {
    let fields = &[START, ("lostSamples", INT, false, false), EVENT_THREAD];
    let (data, count, lost) = converted("jdk.CPUTimeSamplesLost", fields, &[&[10, 3, 1], &[20, 4, 2]]);
    assert_eq!((lost, count.other, count.converted), (7, 2, 0));
    assert_eq!(profiles(&data).count(), 0);
}

/// The times of a profile's samples, from the recording's start, and their values.
fn times_and_values(data: &ProfilesData, sample_type: &str) -> (Vec<u64>, Vec<i64>) {
    let profile = profile(data, sample_type);
    let samples = || profile.samples.iter();
    let times = samples().flat_map(|sample| &sample.timestamps_unix_nano);
    let times = times.map(|time| time - START_NANOS.cast_unsigned()).collect();
    (times, samples().flat_map(|sample| &sample.values).copied().collect())
}

/// In a profile of counts each time stands for one thing. In other profiles each time has its value.
#[test]
fn times_are_those_of_the_events() {
    let options = EncodeOptions { timestamps: true, ..EncodeOptions::default() };
    let fields = &[START, EVENT_THREAD, STACK, WEIGHT];
    let events: [&[i64]; 3] = [&[10, 1, 1, 1], &[20, 1, 1, 3], &[45, 1, 1, 2]];
    let (data, ..) = encoded("datadog.ExecutionSample", fields, &events, &options);
    assert_eq!(times_and_values(&data, "samples"), (vec![10, 20, 20, 20, 45, 45], vec![]));
    let fields = &[START, DURATION, EVENT_THREAD, STACK];
    let events: [&[i64]; 3] = [&[10, 30, 1, 1], &[60, 7, 1, 1], &[80, 9, 2, 2]];
    let (data, ..) = encoded("jdk.ThreadSleep", fields, &events, &options);
    assert_eq!(times_and_values(&data, "delay"), (vec![10, 60, 80], vec![30, 7, 9]));
}

/// The frames of a sample's stack, leaf first.
fn frames<'d>(data: &'d ProfilesData, sample: &Sample) -> Vec<&'d str> {
    let dictionary = data.dictionary.as_ref().unwrap();
    let locations = &dictionary.stack_table[sample.stack_index as usize].location_indices;
    let lines = locations.iter().flat_map(|&location| &dictionary.location_table[location as usize].lines);
    let functions = lines.map(|line| &dictionary.function_table[line.function_index as usize]);
    functions.map(|function| string(data, function.name_strindex)).collect()
}

/// Regression: events without a stack were missing from every sum.
#[test]
fn events_without_a_stack_count_with_a_marker_frame() {
    const BYTES: FieldOf = ("bytesRead", LONG, false, false);
    const ABSENT: i64 = 99;
    let fields = &[START, DURATION, EVENT_THREAD, STACK, BYTES];
    let events: [&[i64]; 4] =
        [&[10, 700, 1, 1, 50], &[20, 300, 1, 0, 8], &[30, 40, 1, ABSENT, 4], &[40, 2, 2, 0, 1]];
    let (data, count, _) = converted("jdk.SocketRead", fields, &events);
    assert_eq!((count.converted, count.without_stack, count.other), (4, 3, 0));
    assert_eq!((sum(&data, "delay"), sum(&data, "io_space")), (1_042, 63));
    let samples = &profile(&data, "io_space").samples;
    let without: Vec<_> = samples.iter().filter(|sample| frames(&data, sample) == ["[no_stack]"]).collect();
    // There is one sample for each thread.
    let values: Vec<_> = without.iter().map(|sample| sample.values[0]).collect();
    assert_eq!((samples.len(), values), (3, vec![12, 1]));
    assert!(without.iter().all(|sample| sample_attribute(&data, sample, "thread.name").is_some()));

    // An event type may lack the stack field altogether; a recording's settings can cause that.
    let fields = &[START, EVENT_THREAD, ("weight", LONG, false, false)];
    let (data, count, _) = converted("jdk.ObjectAllocationSample", fields, &[&[10, 1, 70], &[20, 1, 5]]);
    assert_eq!((count.converted, count.without_stack), (2, 2));
    assert_eq!((sum(&data, "samples"), sum(&data, "alloc_space")), (2, 75));
    assert_eq!(frames(&data, &profile(&data, "samples").samples[0]), ["[no_stack]"]);
}

/// The link and the attributes of a sample with these ids of trace, span and local root.
fn of_span(trace: i64, span: i64, local_root: i64) -> (Option<String>, [Option<String>; 3]) {
    linked_to(Links::Auto, trace, span, local_root)
}

fn linked_to(links: Links, trace: i64, span: i64, local_root: i64) -> (Option<String>, [Option<String>; 3]) {
    let fields = &[
        START,
        EVENT_THREAD,
        STACK,
        WEIGHT,
        ("spanId", LONG, false, false),
        ("localRootSpanId", LONG, false, false),
        ("trace_id", ATTRIBUTE, true, false),
    ];
    let events: [&[i64]; 1] = [&[10, 1, 1, 1, span, local_root, trace]];
    let recording = recorded("datadog.ExecutionSample", fields, &events);
    let mut converter = JfrToOtlp::new(ConvertOptions { links, ..ConvertOptions::default() });
    converter.add(&recording).unwrap();
    let encoded = encode(&converter.convert(), &EncodeOptions::default());
    let data = ProfilesData::decode(&*encoded).unwrap();
    let sample = &profile(&data, "samples").samples[0];
    let link = &data.dictionary.as_ref().unwrap().link_table[sample.link_index as usize];
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let link = (sample.link_index != 0).then(|| format!("{}/{}", hex(&link.trace_id), hex(&link.span_id)));
    let keys = ["trace_id", "otlpprof.span.id", "otlpprof.local_root_span.id"];
    (link, keys.map(|key| sample_attribute(&data, sample, key)))
}

#[test]
fn a_span_is_linked_and_its_local_root_is_an_attribute() {
    let link = format!("{:032x}/{:016x}", 2, 0xabc);
    let root = || Some(format!("{:016x}", 0xdef));
    assert_eq!(of_span(2, 0xabc, 0xdef), (Some(link.clone()), [None, None, root()]));
    assert_eq!(of_span(2, 0xabc, 0), (Some(link), [None, None, None]));
}

/// A link requires both ids.
#[test]
fn ids_that_no_link_can_have_are_attributes() {
    let id = |id: i64| Some(format!("{id:016x}"));
    assert_eq!(of_span(0, 0xabc, 0), (None, [None, id(0xabc), None]));
    assert_eq!(of_span(0, 0, 0xdef), (None, [None, None, id(0xdef)]));
    assert_eq!(of_span(2, 0, 0xdef), (None, [Some(format!("{:032x}", 2)), None, id(0xdef)]));
    assert_eq!(of_span(0, 0, 0), (None, [None, None, None]));
}

/// Regression: without a trace id, which Datadog's own recordings mostly lack, there was no link. Datadog's
/// converter uses the local root span's id as the trace id of a link.
#[test]
fn a_span_without_a_trace_is_linked_to_by_its_local_root() {
    let id = |id: i64| Some(format!("{id:016x}"));
    let link = |trace: i64| Some(format!("{trace:032x}/{:016x}", 0xabc));
    let root = 0xdef;
    assert_eq!(of_span(0, 0xabc, root), (link(root), [None, None, id(root)]));
    // The highest bit is part of the id, not a sign.
    let negative = i64::MIN | 5;
    let expected = Some(format!("{:016x}{negative:016x}/{:016x}", 0, 0xabc));
    assert_eq!(of_span(0, 0xabc, negative).0, expected);
    // By option, only the trace id is used, or always the local root. In the latter case the trace id becomes
    // an attribute.
    assert_eq!(linked_to(Links::Trace, 0, 0xabc, root), (None, [None, id(0xabc), id(root)]));
    assert_eq!(linked_to(Links::Trace, 2, 0xabc, root), (link(2), [None, None, id(root)]));
    let trace = Some(format!("{:032x}", 2));
    assert_eq!(linked_to(Links::LocalRoot, 2, 0xabc, root), (link(root), [trace, None, id(root)]));
    assert_eq!(linked_to(Links::LocalRoot, 0, 0xabc, 0), (None, [None, id(0xabc), None]));

    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), recording(SHAPE)).unwrap();
    let out = tempfile::NamedTempFile::new().unwrap();
    for (links, is_of_root) in [("auto", false), ("trace", false), ("local-root", true)] {
        let arguments = ["convert", text(file.path()), "-o", text(out.path()), "--links", links];
        let (code, printed) = printed_by_otlpprof(&arguments);
        assert_eq!(code, 0, "{printed}");
        let data = ProfilesData::decode(&*std::fs::read(out.path()).unwrap()).unwrap();
        let link = &data.dictionary.as_ref().unwrap().link_table[1];
        // `recording` writes trace 1 for the local root 1 << 31 | 7.
        let trace: u128 = if is_of_root { 1 << 31 | 7 } else { 1 };
        assert_eq!(link.trace_id, trace.to_be_bytes(), "{links}");
    }
}

/// Events that differ in anything but time and values are different samples, in whatever order they occur.
#[test]
fn events_that_differ_in_one_thing_are_samples_of_their_own() {
    let fields = &[
        START,
        DURATION,
        EVENT_THREAD,
        STACK,
        ("state", THREAD_STATE, true, false),
        ("monitorClass", CLASS, true, false),
        ("previousOwner", THREAD, true, false),
        ("spanId", LONG, false, false),
        ("localRootSpanId", LONG, false, false),
        ("trace_id", ATTRIBUTE, true, false),
        ("operation", ATTRIBUTE, true, false),
        ("failed", BOOLEAN, false, false),
    ];
    const FIRST_OF_IDENTITY: usize = 2;
    const STACK_AT: usize = 3;
    const FAILED_AT: usize = 11;
    let same = [10, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0];
    let mut all = Vec::new();
    for changed in FIRST_OF_IDENTITY..FAILED_AT {
        let mut other = same;
        other[changed] = if changed == 4 { 0 } else { 2 };
        all.extend([same, other]);
    }
    let (mut failed, mut without_stack) = (same, same);
    (failed[STACK_AT], failed[FAILED_AT]) = (0, 1);
    without_stack[STACK_AT] = 0;
    all.extend([failed, without_stack]);
    let mut events = Vec::new();
    for (position, event) in (0..).zip(all.iter().cycle().take(3 * all.len())) {
        let mut event = *event;
        (event[0], event[1]) = (10 + position, 1 + position);
        events.push(event);
    }
    let as_slices: Vec<&[i64]> = events.iter().map(|event| &event[..]).collect();
    let (data, count, _) = converted("jdk.JavaMonitorEnter", fields, &as_slices);
    let differing = (FAILED_AT - FIRST_OF_IDENTITY) as u64;
    assert_eq!((count.converted, count.failed, count.without_stack), (3 * (2 * differing + 2), 3, 3));
    let mut counts: Vec<i64> =
        profile(&data, "contentions").samples.iter().map(|sample| sample.values[0]).collect();
    counts.sort_unstable();
    let mut expected = vec![3; differing as usize + 2];
    expected.push(3 * differing as i64);
    assert_eq!(counts, expected);
    assert_eq!(sum(&data, "delay"), events.iter().map(|event| event[1]).sum::<i64>());
}

/// A chunk of `app.Sent` events with these fields. An event is given by its fields' numbers.
fn sent(fields: &'static [FieldOf], events: &[&[i64]]) -> Vec<u8> {
    let event: TypeOf = (EVENT, "app.Sent", "jdk.jfr.Event", fields);
    let write = |out: &mut Writer| {
        for event in events {
            assert_eq!(event.len(), fields.len());
            out.event(EVENT, |out| event.iter().for_each(|&field| out.integer(field)));
        }
    };
    let constants = |out: &mut Writer| pools_of_constants(out, SHAPE, 3);
    crafted(&[VALUE_TYPES, &[event]].concat(), write, CONSTANT_POOLS, constants)
}

/// Regression: for a field that is a constant instead of an integer, keys were summed; and events that add
/// nothing were counted as converted. Events may differ between versions of a program. If the field is
/// present, it is summed; a value of 0 or less adds nothing. If the field is missing or is not an integer,
/// the event is skipped, which is reported once. Events that are only counted need no field.
#[test]
fn a_field_that_was_asked_for_may_be_missing_in_some_chunks() {
    const BYTES: FieldOf = ("bytes", LONG, false, false);
    const OTHER: FieldOf = ("count", LONG, false, false);
    const TEXT: FieldOf = ("bytes", ATTRIBUTE, true, false);
    const BARE: FieldOf = ("bytes", INT, false, false);
    let with = sent(&[START, STACK, BYTES], &[&[10, 1, 100], &[20, 1, 0], &[30, 1, -7], &[40, 2, 5]]);
    let without = sent(&[START, STACK, OTHER], &[&[10, 1, 1_000], &[20, 2, 1_000]]);
    let of_text = sent(&[START, STACK, TEXT], &[&[10, 1, 1]]);
    let without_stack = sent(&[START, BARE], &[&[10, 70_000]]);
    let elsewhere = sent(&[BARE, STACK, START], &[&[30_000, 1, 10]]);
    let whole = [&with[..], &without, &of_text, &without, &without_stack, &elsewhere].concat();

    let sums = |events: &[&str]| {
        let events = events.iter().map(|event| event.parse().unwrap()).collect();
        let mut converter = JfrToOtlp::new(ConvertOptions { events, ..ConvertOptions::default() });
        converter.add(&whole).unwrap();
        let problems = converter.problems().to_vec();
        let counts: Vec<_> = converter.counts().map(|(_, count)| count).collect();
        let [count] = counts[..] else { panic!("{counts:?}") };
        let data = encode(&converter.convert(), &EncodeOptions::default());
        let data = ProfilesData::decode(&*data).unwrap();
        (data, [count.converted, count.without_stack, count.without_value, count.other], problems)
    };
    let all_problems = [
        "app.Sent has no field bytes",
        "app.Sent: the field bytes is not an integer",
        "app.Sent has no stack trace",
    ];
    let (data, counts, problems) = sums(&["app.Sent:bytes"]);
    assert_eq!(sum(&data, "bytes"), 100 + 5 + 30_000);
    assert_eq!(problems, all_problems);
    assert_eq!(counts, [3, 0, 2, 6]);
    let (data, counts, problems) = sums(&["app.Sent", "app.Sent:bytes"]);
    assert_eq!((sum(&data, "events"), sum(&data, "bytes")), (4 + 2 + 1 + 2 + 1, 100 + 5 + 30_000));
    assert_eq!(problems, all_problems);
    assert_eq!(counts, [10, 0, 0, 1]);

    // Regression: events that were requested twice were counted twice.
    let (data, ..) = sums(&["app.Sent:bytes", "app.Sent", "app.Sent:bytes", "app.Sent"]);
    assert_eq!((sum(&data, "events"), sum(&data, "bytes")), (4 + 2 + 1 + 2 + 1, 100 + 5 + 30_000));

    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &whole).unwrap();
    let arguments = ["convert", text(file.path()), "-o", "/dev/null", "--event", "app.Sent:bytes"];
    let (code, printed) = printed_by_otlpprof(&arguments);
    let lines: Vec<_> = printed.lines().collect();
    let converted = "app.Sent: 3 converted, 0 without a stack, 2 with no value above 0";
    let mut expected = vec![converted, "not converted: app.Sent 6"];
    let problems: Vec<_> = all_problems.iter().map(|problem| format!("otlpprof: {problem}")).collect();
    expected.extend(problems.iter().map(String::as_str));
    assert_eq!((code, lines), (2, expected));
}
