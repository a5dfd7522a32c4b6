//! Settings in recordings: the period between samples, and the clock or event that triggered them.

use std::collections::BTreeMap;

use otlpprof_otlp::wire::ProfilesData;
use otlpprof_testkit::commands::{printed_by_otlpprof, text};
use otlpprof_testkit::recordings::converted::{attribute, profiles, string};
use otlpprof_testkit::recordings::synthetic::{
    CONSTANT_POOLS, FieldOf, INT, LONG, STACK_TRACE, STRING, Shape, THREAD, THREAD_STATE, TypeOf,
    VALUE_TYPES, Writer, crafted, pools_of_constants,
};
use prost::Message as _;

const SHAPE: Shape =
    Shape { events: 1, depth: 4, repeated_percent: 0, contexts: 3, remote_frames: 0, compressed: true };

const EXECUTION: i64 = 101;
const WALL_CLOCK: i64 = 102;
const RECORDING: i64 = 107;
const SETTING: i64 = 110;
const LOG: i64 = 111;
const METHOD_SAMPLE: i64 = 112;

const START: FieldOf = ("startTime", LONG, false, false);
const SAMPLED: FieldOf = ("sampledThread", THREAD, true, false);
const STACK: FieldOf = ("stackTrace", STACK_TRACE, true, false);
const STATE: FieldOf = ("state", THREAD_STATE, true, false);

/// The types of the JVM's own recorder.
const OF_JVM: [TypeOf; 3] = [
    (EXECUTION, "jdk.ExecutionSample", "jdk.jfr.Event", &[START, SAMPLED, STACK, STATE]),
    (RECORDING, "jdk.ActiveRecording", "jdk.jfr.Event", &[START]),
    (
        SETTING,
        "jdk.ActiveSetting",
        "jdk.jfr.Event",
        &[START, ("id", LONG, false, false), ("name", STRING, false, false), ("value", STRING, false, false)],
    ),
];
/// Additional types of async-profiler.
const OF_ASYNC_PROFILER: [TypeOf; 2] = [
    (
        WALL_CLOCK,
        "profiler.WallClockSample",
        "jdk.jfr.Event",
        &[START, SAMPLED, STACK, STATE, ("samples", INT, false, false)],
    ),
    (LOG, "profiler.Log", "jdk.jfr.Event", &[START]),
];
/// Types of Datadog's profiler.
const OF_DATADOG: [TypeOf; 2] = [
    (EXECUTION, "datadog.ExecutionSample", "jdk.jfr.Event", &[START, SAMPLED, STACK]),
    (METHOD_SAMPLE, "datadog.MethodSample", "jdk.jfr.Event", &[START, SAMPLED, STACK]),
];

/// A setting: the event type's id, the name and the value.
type Setting = (i64, &'static str, &'static str);

/// The contents of a chunk: settings, and samples given by type, number and key of the state.
struct Content<'a> {
    settings: &'a [Setting],
    samples: &'a [(i64, usize, i64)],
}

fn chunk(types: &[TypeOf], content: &Content<'_>) -> Vec<u8> {
    let events = |out: &mut Writer| {
        for (of, name, value) in content.settings {
            out.event(SETTING, |out| {
                out.long(1);
                out.long(*of);
                out.text(name);
                out.text(value);
            });
        }
        for (of, count, state) in content.samples {
            for position in 0..*count {
                out.event(*of, |out| {
                    [2 + position as i64, 1, 1].into_iter().for_each(|field| out.long(field));
                    if *of == EXECUTION || *of == WALL_CLOCK {
                        out.long(*state);
                    }
                    if *of == WALL_CLOCK {
                        out.int(3);
                    }
                });
            }
        }
    };
    let constants = |out: &mut Writer| pools_of_constants(out, SHAPE, 3);
    crafted(&[VALUE_TYPES, types].concat(), events, CONSTANT_POOLS, constants)
}

fn by_async_profiler(content: &Content<'_>) -> Vec<u8> {
    chunk(&[&OF_JVM[..], &OF_ASYNC_PROFILER].concat(), content)
}

fn by_jvm(content: &Content<'_>) -> Vec<u8> {
    chunk(&OF_JVM, content)
}

/// The period and the sum of the samples' values, by profile type, period type and event.
type Sums = BTreeMap<(String, String, String), (i64, i64)>;

/// The sums of the converted recordings.
fn converted(recordings: &[&[u8]]) -> Sums {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let mut files = Vec::new();
    for (position, recording) in recordings.iter().enumerate() {
        let file = directory.path().join(position.to_string());
        std::fs::write(&file, recording).unwrap();
        files.push(text(&file).to_owned());
    }
    let mut arguments = vec!["convert", "--validate", "-o", text(&out)];
    arguments.extend(files.iter().map(String::as_str));
    let (code, printed) = printed_by_otlpprof(&arguments);
    assert_eq!(code, 0, "{printed}");
    let data = ProfilesData::decode(&*std::fs::read(out).unwrap()).unwrap();
    let of = |profile: &otlpprof_otlp::wire::Profile| {
        let key = |key| attribute(&data, &profile.attribute_indices, key).unwrap_or_default();
        let period_type = string(&data, profile.period_type.as_ref().unwrap().type_strindex).to_owned();
        let values = profile.samples.iter().flat_map(|sample| &sample.values);
        let key = (key("profile.type"), period_type, key("otlpprof.jfr.event"));
        (key, (profile.period, values.sum()))
    };
    profiles(&data).map(of).collect()
}

fn sums(of: &[(&str, &str, &str, i64, i64)]) -> Sums {
    let sum = |&(profile, period, event, nanos, value): &(&str, &str, &str, i64, i64)| {
        ((profile.to_owned(), period.to_owned(), event.to_owned()), (nanos, value))
    };
    of.iter().map(sum).collect()
}

const MS: i64 = 1_000_000;

/// Regression: an interval of 0, which requests the default, was taken as the JVM's default of 20 ms.
#[test]
fn async_profilers_default_interval_is_its_own() {
    let of_cpu = |period| sums(&[("cpu", "cpu", "jdk.ExecutionSample", period, 5)]);
    let samples: &[(i64, usize, i64)] = &[(EXECUTION, 5, 0)];
    for event in ["cpu", "ctimer", "itimer", "cpu-clock"] {
        let settings = [(RECORDING, "event", event), (EXECUTION, "interval", "0")];
        let recording = by_async_profiler(&Content { settings: &settings, samples });
        assert_eq!(converted(&[&recording]), of_cpu(10 * MS), "{event}");
    }
    let nothing = Content { settings: &[], samples };
    assert_eq!(converted(&[&by_async_profiler(&nothing)]), of_cpu(10 * MS));
    assert_eq!(converted(&[&by_jvm(&nothing)]), of_cpu(20 * MS));
    let settings = [(EXECUTION, "period", "10 ms")];
    assert_eq!(converted(&[&by_jvm(&Content { settings: &settings, samples })]), of_cpu(10 * MS));
}

/// Regression: with a CPU clock, the wall clock's default was taken to be that clock's interval.
#[test]
fn async_profilers_default_wall_interval_is_its_own() {
    for (settings, cpu, wall) in [
        (
            &[(RECORDING, "event", "ctimer"), (EXECUTION, "interval", "1000000"), (EXECUTION, "wall", "0")],
            1,
            50,
        ),
        (
            &[(RECORDING, "event", "ctimer"), (EXECUTION, "interval", "0"), (EXECUTION, "wall", "7000000")],
            10,
            7,
        ),
    ] {
        let recording = by_async_profiler(&Content {
            settings,
            samples: &[(EXECUTION, 5, 0), (EXECUTION, 2, 1), (WALL_CLOCK, 4, 1)],
        });
        let expected = sums(&[
            ("cpu", "cpu", "jdk.ExecutionSample", cpu * MS, 5),
            ("wall", "wall", "profiler.WallClockSample", wall * MS, 12),
            ("wall", "jdk.ExecutionSample", "jdk.ExecutionSample", wall * MS, 2),
        ]);
        assert_eq!(converted(&[&recording]), expected, "{settings:?}");
    }
    let settings = [(RECORDING, "event", "wall"), (EXECUTION, "interval", "0")];
    let recording = by_async_profiler(&Content { settings: &settings, samples: &[(EXECUTION, 4, 1)] });
    assert_eq!(converted(&[&recording]), sums(&[("wall", "wall", "jdk.ExecutionSample", 50 * MS, 4)]));
}

/// Some versions of Datadog's profiler write no setting for a clock whose interval is the default.
#[test]
fn datadogs_default_intervals_are_its_own() {
    let types = [&OF_DATADOG[..], &OF_JVM[1..]].concat();
    let samples: &[(i64, usize, i64)] = &[(METHOD_SAMPLE, 3, 0)];
    let recording = chunk(&types, &Content { settings: &[], samples });
    let wall = |period| sums(&[("wall", "wall", "datadog.MethodSample", period, 3)]);
    assert_eq!(converted(&[&recording]), wall(50 * MS));
    let settings = [(METHOD_SAMPLE, "interval", "10000000")];
    assert_eq!(converted(&[&chunk(&types, &Content { settings: &settings, samples })]), wall(10 * MS));
}

/// Regression: only the first chunk has settings. Later chunks were converted with default periods, and their
/// wall-clock samples became CPU time.
#[test]
fn settings_hold_until_the_same_writer_notes_others() {
    let settings =
        [(RECORDING, "event", "ctimer"), (EXECUTION, "interval", "2000000"), (EXECUTION, "wall", "30000000")];
    let samples: &[(i64, usize, i64)] = &[(EXECUTION, 5, 0), (EXECUTION, 2, 1)];
    let first = by_async_profiler(&Content { settings: &settings, samples });
    let later = by_async_profiler(&Content { settings: &[], samples });
    let both = |cpu: (i64, i64), wall: (i64, i64)| {
        let cpu = ("cpu", "cpu", "jdk.ExecutionSample", cpu.0, cpu.1);
        sums(&[cpu, ("wall", "wall", "jdk.ExecutionSample", wall.0, wall.1)])
    };
    let three = [&first[..], &later, &later].concat();
    assert_eq!(converted(&[&three]), both((2 * MS, 15), (30 * MS, 6)));

    // Chunks of another writer in between, as with `jfrsync`, have their own settings and do not change the
    // first writer's.
    let of_jvm =
        by_jvm(&Content { settings: &[(EXECUTION, "period", "2 ms")], samples: &[(EXECUTION, 3, 1)] });
    assert_eq!(
        converted(&[&[&first[..], &of_jvm, &later].concat()]),
        both((2 * MS, 13), (30 * MS, 4)),
        "the JVM's samples have a state too, and are CPU time"
    );

    // The next recording writes all its settings, so nothing remains of the previous recording's wall clock.
    let other = [(RECORDING, "event", "itimer"), (EXECUTION, "interval", "2000000")];
    let other = by_async_profiler(&Content { settings: &other, samples });
    assert_eq!(
        converted(&[&[&first[..], &later, &other, &later].concat()]),
        both((2 * MS, 24), (30 * MS, 4))
    );

    // A separate file has none of these settings.
    let of_cpu = sums(&[("cpu", "cpu", "jdk.ExecutionSample", 10 * MS, 7)]);
    assert_eq!(converted(&[&later]), of_cpu);
    let short = by_async_profiler(&Content { settings: &settings[..2], samples: &[(EXECUTION, 5, 0)] });
    // Five samples of 2 ms, and seven of 10 ms.
    let mean = (5 * 2 * MS + 7 * 10 * MS + 6) / 12;
    assert_eq!(converted(&[&short, &later]), sums(&[("cpu", "cpu", "jdk.ExecutionSample", mean, 12)]));
}

/// Regression: samples of another perf event became CPU time, with the event's period taken as nanoseconds.
#[test]
fn samples_by_another_event_are_a_profile_of_that_event() {
    for (event, interval, period) in [
        ("page-faults", "10", 10),
        ("page-faults", "0", 1),
        ("cache-misses", "0", 1_000),
        ("sched:sched_switch", "0", 1),
        ("java.lang.String.indexOf", "0", 1),
        ("java.lang.String.indexOf", "1000", 1_000),
    ] {
        let settings = [(RECORDING, "event", event), (EXECUTION, "interval", interval)];
        let samples: &[(i64, usize, i64)] = &[(EXECUTION, 5, 0)];
        let first = by_async_profiler(&Content { settings: &settings, samples });
        let later = by_async_profiler(&Content { settings: &[], samples });
        let expected = sums(&[(event, event, "jdk.ExecutionSample", period, 10)]);
        assert_eq!(converted(&[&[first, later].concat()]), expected, "{event} {interval}");
    }
    // With a wall clock in addition, whose samples have a state.
    let settings =
        [(RECORDING, "event", "page-faults"), (EXECUTION, "interval", "7"), (EXECUTION, "wall", "0")];
    let samples: &[(i64, usize, i64)] = &[(EXECUTION, 5, 0), (EXECUTION, 2, 1)];
    let recording = by_async_profiler(&Content { settings: &settings, samples });
    let expected = sums(&[
        ("page-faults", "page-faults", "jdk.ExecutionSample", 7, 5),
        ("wall", "wall", "jdk.ExecutionSample", 50 * MS, 2),
    ]);
    assert_eq!(converted(&[&recording]), expected);
    // The JVM has no such setting.
    let settings = [(RECORDING, "event", "page-faults")];
    let recording = by_jvm(&Content { settings: &settings, samples });
    assert_eq!(converted(&[&recording]), sums(&[("cpu", "cpu", "jdk.ExecutionSample", 20 * MS, 7)]));
}
