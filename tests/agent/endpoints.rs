//! The test program in which each thread serves one endpoint and causes events for every engine, and the
//! checks of its profiles.

use std::collections::BTreeSet;
use std::path::Path;

use otlpprof_otlp::lookup::{DictionaryTables as _, Lookup};

use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::stacks::Stack;

const LIBRARY: &str = otlpprof_testkit::products::ALLOCATING;
pub(crate) const PROGRAM: &str = "programs.EngineContexts.";
/// The endpoints. Each has a method and a span of its own.
pub(crate) const ENDPOINTS: [&str; 3] = ["endpoint0", "endpoint1", "endpoint2"];

const ENGINES: &str = "cpu=500us,wall=2ms,alloc=4k,live=4k,lock,wait,exceptions,nativemem=4k,nativemem.leaks,\
                       trace=programs.EngineContexts.traced:500us";
const EVENT: &str = "event=page-faults:4";

/// Profile types, each with a method of the program that must occur in one of their samples below each
/// endpoint.
const WORK: [(&str, &str); 12] = [
    ("cpu", "burns"),
    ("wall", "burns"),
    ("alloc-space", "allocates"),
    ("alloc-objects", "allocates"),
    ("live-heap", "keeps"),
    ("lock-contention", "contends"),
    ("lock-contention", "parks"),
    ("wait", "awaits"),
    ("exceptions", "fails"),
    ("nativemem", "mallocs"),
    ("nativemem-leak", "mallocs"),
    ("trace", "traced"),
];
/// The profile type and method of perf events, which are tested if the system grants them.
const FAULTS: (&str, &str) = ("page-faults", "faults");

/// The profiles of a run: `profile.type`, sample type, and the sample type's unit.
pub(crate) fn kinds(run: &Finished) -> BTreeSet<(String, String, String)> {
    let mut kinds = BTreeSet::new();
    for message in run.messages() {
        let lookup = Lookup::new(&message.data);
        for profile in message.data.resource_profiles.iter().flat_map(|r| &r.scope_profiles[0].profiles) {
            let profile_type = lookup.attribute_text(&profile.attribute_indices, "profile.type");
            let (sample_type, unit) = lookup.value_type(profile.sample_type);
            kinds.insert((profile_type.unwrap().to_owned(), sample_type.to_owned(), unit.to_owned()));
        }
    }
    kinds
}

/// The endpoint that the thread serves, by the methods in the stack.
pub(crate) fn served(stack: &Stack) -> Option<usize> {
    let serves = |endpoint: &&str| stack.has(&format!("{PROGRAM}{endpoint}"));
    let served: Vec<_> = (0..ENDPOINTS.len()).filter(|&index| serves(&ENDPOINTS[index])).collect();
    assert!(served.len() <= 1, "two endpoints: {stack:#?}");
    served.first().copied()
}

/// The profile types and methods that this run must contain.
pub(crate) fn wanted_work(run: &Finished) -> Vec<(&'static str, &'static str)> {
    let mut work = WORK.to_vec();
    if run.stderr.contains("event=page-faults is off: ") {
        not_tested("samples of a perf event, since perf events are not granted");
    } else {
        work.push(FAULTS);
    }
    work
}

/// A run with all engines, followed by further options.
pub(crate) fn run(home: &Path, seconds: &str, threads: &[&str], options: &str) -> Finished {
    let mut run = JavaRun::new(home, "EngineContexts").argument(seconds).argument(LIBRARY);
    for threads in threads {
        run = run.argument(threads);
    }
    let apart = format!("-XX:CompileCommand=dontinline,{}::endpoint*", PROGRAM.trim_end_matches('.'));
    let run = run.jvm_option("-XX:CompileCommand=quiet").jvm_option(&apart).jvm_option("-Xmx256m");
    run.agent(&format!("{ENGINES},{EVENT},interval=1s,file=FILE{options}")).run().expect_success()
}
