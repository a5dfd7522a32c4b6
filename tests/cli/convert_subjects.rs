//! The subjects of converted samples: for each class of an object, a monitor or an exception, there are as
//! many samples as the JDK's own reader prints events.

use std::collections::BTreeMap;
use std::process::Command;

use otlpprof_otlp::wire::ProfilesData;
use otlpprof_testkit::recordings::converted::{attribute, convert, profiles, string};
use otlpprof_testkit::recordings::{corpus, jfr_program, recordings};

/// An event; the profile that counts it (`profile.type`, sample type, event); the kind of lock; the field
/// with the class in the JDK's output; the attribute's key.
type Known = (&'static str, [&'static str; 3], &'static str, &'static str, &'static str);

const TLAB: &str = "jdk.ObjectAllocationInNewTLAB";
const OBJECT: &str = "otlpprof.object.class";
const MONITOR: &str = "otlpprof.monitor.class";

const KNOWN: &[Known] = &[
    (
        "jdk.ObjectAllocationSample",
        ["alloc-samples", "samples", "jdk.ObjectAllocationSample"],
        "",
        "objectClass",
        OBJECT,
    ),
    (TLAB, ["alloc-samples", "samples", TLAB], "", "objectClass", OBJECT),
    ("jdk.ObjectAllocationOutsideTLAB", ["alloc-samples", "samples", TLAB], "", "objectClass", OBJECT),
    ("jdk.OldObjectSample", ["live-heap", "inuse_objects", "jdk.OldObjectSample"], "", "object", OBJECT),
    ("profiler.LiveObject", ["live-heap", "inuse_objects", "profiler.LiveObject"], "", "objectClass", OBJECT),
    ("jdk.JavaMonitorEnter", ["lock-contention", "contentions", ""], "monitor", "monitorClass", MONITOR),
    ("jdk.JavaMonitorWait", ["lock-contention", "contentions", ""], "wait", "monitorClass", MONITOR),
    ("jdk.ThreadPark", ["lock-contention", "contentions", ""], "park", "parkedClass", MONITOR),
    ("jdk.JavaExceptionThrow", ["exceptions", "exceptions", ""], "", "thrownClass", "exception.type"),
];

/// Numbers of events by profile, kind of lock, and class; the class is empty if there is none.
type Counts = BTreeMap<([String; 3], String, String), i64>;

/// The numbers of events in the JDK's output.
fn printed(name: &str) -> Option<Counts> {
    let Some(jfr) = jfr_program() else {
        otlpprof_testkit::skipped::not_tested("no JDK with bin/jfr in /usr/lib/jvm to compare with");
        return None;
    };
    let events: Vec<_> = KNOWN.iter().map(|(event, ..)| *event).collect();
    let mut jfr = Command::new(jfr);
    jfr.args(["print", "--stack-depth", "1", "--events", &events.join(",")]).arg(&corpus()[name]);
    let printed = jfr.output().unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let printed = String::from_utf8(printed.stdout).unwrap();
    let mut counts = Counts::new();
    for event in printed.split("\n}\n") {
        let mut lines = event.trim_start().lines();
        let Some(event_name) = lines.next().and_then(|line| line.strip_suffix(" {")) else { continue };
        let lines: Vec<&str> = lines.map(str::trim).collect();
        let (_, profile, kind, field, _) = KNOWN.iter().find(|(known, ..)| *known == event_name).unwrap();
        let at = lines.iter().position(|line| line.starts_with(&format!("{field} = ")));
        // The forms are `objectClass = byte[] (classLoader = bootstrap)`, and `object =  [` followed by lines
        // such as `java.util.ArrayList Size: 2`, `byte[10]`, or a field and its owner. The first of these
        // lines is the object itself.
        let class = at.map_or("", |at| match lines[at].split_once(" = ").unwrap().1.trim() {
            "[" => lines[at + 1],
            class => class,
        });
        let class = match class {
            "N/A" => "",
            class => class.split([' ', '/']).next().unwrap(),
        };
        let class = match class.split_once('[') {
            Some((element, rest)) => {
                format!("{element}{}", "[]".repeat(1 + rest.matches('[').count()))
            }
            None => class.to_owned(),
        };
        // Numbers in the names of lambda classes, of proxy classes and of the proxies' packages differ
        // between runs.
        let class = match class.split_once("$$Lambda") {
            Some((outer, _)) => format!("{outer}$$Lambda"),
            None if class.starts_with("jdk.proxy") => "jdk.proxy.$Proxy".to_owned(),
            None if class.starts_with("com.sun.proxy.") => "com.sun.proxy.$Proxy".to_owned(),
            None => class,
        };
        *counts.entry((profile.map(str::to_owned), (*kind).to_owned(), class)).or_default() += 1;
    }
    Some(counts)
}

/// The numbers of samples in a converted result.
fn counted(data: &ProfilesData) -> Counts {
    let mut counts = Counts::new();
    for profile in profiles(data) {
        let of = |key| attribute(data, &profile.attribute_indices, key).unwrap_or_default();
        let sample_type = string(data, profile.sample_type.as_ref().unwrap().type_strindex);
        let key = [of("profile.type"), sample_type.to_owned(), of("otlpprof.jfr.event")];
        let Some((.., class_key)) = KNOWN.iter().find(|(_, known, ..)| *known == key) else { continue };
        for sample in &profile.samples {
            let of = |key| attribute(data, &sample.attribute_indices, key).unwrap_or_default();
            let entry = (key.clone(), of("otlpprof.lock.kind"), of(class_key));
            *counts.entry(entry).or_default() += sample.values.iter().sum::<i64>();
        }
    }
    counts
}

fn check(name: &str) -> Option<Counts> {
    let expected = printed(name)?;
    let counts = counted(&convert(&corpus()[name], &[]).0);
    assert_eq!(counts, expected, "{name}");
    Some(counts)
}

fn has(counts: &Counts, profile_type: &str, class: &str) -> bool {
    counts.keys().any(|(profile, _, of)| profile[0] == profile_type && of == class)
}

#[test]
fn classes_have_as_many_samples_as_the_jdk_prints_events() {
    for (name, _) in recordings(|name| name.ends_with("-rich")) {
        let Some(counts) = check(name) else { return };
        assert!(has(&counts, "alloc-samples", "byte[]"), "{name}: {counts:?}");
        assert!(has(&counts, "lock-contention", "java.lang.Object"), "{name}: {counts:?}");
        assert!(has(&counts, "live-heap", "byte[]"), "{name}: {counts:?}");
        let is_exception = |(profile, _, class): &([String; 3], String, String)| {
            profile[0] == "exceptions" && class.starts_with("java.lang.")
        };
        assert!(counts.keys().any(is_exception), "{name}: {counts:?}");
    }
}

#[test]
fn async_profilers_classes_are_named_as_the_jvms() {
    for (name, _) in recordings(|name| ["async-profiler", "async-profiler-both"].contains(&name)) {
        let Some(counts) = check(name) else { return };
        assert!(has(&counts, "alloc-samples", "byte[]"), "{name}: {counts:?}");
    }
}

/// The JDK refuses to read the events of these recordings.
#[test]
fn datadogs_objects_have_classes() {
    for (name, _) in recordings(|name| name == "datadog") {
        let (data, _) = convert(&corpus()[name], &[]);
        for profile in profiles(&data) {
            let of = attribute(&data, &profile.attribute_indices, "otlpprof.jfr.event").unwrap_or_default();
            if !["datadog.ObjectSample", "datadog.HeapLiveObject"].contains(&&*of) {
                continue;
            }
            for sample in &profile.samples {
                let class = attribute(&data, &sample.attribute_indices, OBJECT).expect("a class");
                let is_java = class.trim_end_matches("[]").split('.').all(|part| !part.is_empty());
                assert!(is_java && !class.contains(['/', ';']) && !class.starts_with('['), "{class}");
            }
        }
    }
}

#[test]
fn freed_memory_is_reported() {
    for (name, _) in recordings(|name| name == "async-profiler-both") {
        let (_, messages) = convert(&corpus()[name], &[]);
        let line = messages.lines().find(|line| line.starts_with("profiler.Free: ")).expect(&messages);
        assert!(
            line.ends_with("nativemem profiles include them, since they count all allocations"),
            "{line}"
        );
        assert!(!messages.contains("not converted: ") || !messages.contains("profiler.Free, "), "{messages}");
    }
}

/// The owners of contended monitors in the JDK's output, with the number of events.
fn printed_owners(name: &str) -> Option<BTreeMap<String, i64>> {
    let mut jfr = Command::new(jfr_program()?);
    jfr.args(["print", "--stack-depth", "1", "--events", "jdk.JavaMonitorEnter"]).arg(&corpus()[name]);
    let printed = String::from_utf8(jfr.output().unwrap().stdout).unwrap();
    let mut owners = BTreeMap::new();
    for event in printed.split("\n}\n").filter(|event| event.contains("stackTrace = [")) {
        let owner = event.lines().find_map(|line| line.trim().strip_prefix("previousOwner = "));
        // The form is `"Thread-1" (javaThreadId = 20)`.
        let owner = owner.and_then(|owner| owner.strip_prefix('"')?.rsplit_once('"')).map_or("", |it| it.0);
        *owners.entry(owner.to_owned()).or_default() += 1;
    }
    Some(owners)
}

#[test]
fn contended_monitors_have_the_owner_that_the_jdk_prints() {
    for (name, _) in recordings(|name| name.ends_with("-rich")) {
        let Some(expected) = printed_owners(name) else { return };
        let data = convert(&corpus()[name], &[]).0;
        let mut owners = BTreeMap::new();
        let is_contention = |sample_type: &str| sample_type == "contentions";
        let contentions = profiles(&data).filter(|profile| {
            is_contention(string(&data, profile.sample_type.as_ref().unwrap().type_strindex))
        });
        for sample in contentions.flat_map(|profile| &profile.samples) {
            let of = |key| attribute(&data, &sample.attribute_indices, key).unwrap_or_default();
            if of("otlpprof.lock.kind") == "monitor" {
                *owners.entry(of("otlpprof.lock.owner.name")).or_default() +=
                    sample.values.iter().sum::<i64>();
            }
        }
        assert_eq!(owners, expected, "{name}");
        assert!(owners.keys().any(|owner| !owner.is_empty()), "{name}: {owners:?}");
    }
}
