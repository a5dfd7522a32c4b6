//! All engines at once, with their defaults, over a program that has work for each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use crate::estimate::Estimate;
use otlpprof_core::engine::Engine;
use otlpprof_model::attribute_keys::EXCEPTION_TYPE;
use otlpprof_otlp::lookup::{DictionaryTables as _, Lookup};
use otlpprof_otlp::read::Message;
use otlpprof_otlp::wire::Value;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::{java_version, newest_or_all};
use otlpprof_testkit::profiles::profile_types;
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::stacks::stacks_of;

/// The seconds for which the program runs, in place of a few. `OTLPPROF_TEST_ENGINES_S=600` is a soak test on
/// the newest JDK, with only the defaults.
const SECONDS: &str = "OTLPPROF_TEST_ENGINES_S";

/// More samples and more profiles than with the defaults, so that a run of seconds has some of each.
const DENSE: &str = "cpu,wall,alloc,live=64k,lock,wait,exceptions,nativemem=256k,nativemem.leaks,interval=1s";

const DEFAULTS: &str =
    "cpu,wall,alloc,live,lock,wait,exceptions,nativemem,nativemem.leaks,budget=2,limit=10000";

const TRACE: &str = "trace=programs.MixedWork.burn";

/// The event with a short period: with the default period the program would have too few page faults.
const EVENT: &str = "event=page-faults:10";

const TYPES: [&str; 11] = [
    "cpu",
    "wall",
    "alloc-space",
    "alloc-objects",
    "live-heap",
    "lock-contention",
    "wait",
    "exceptions",
    "nativemem",
    "nativemem-leak",
    "trace",
];

fn types_with(has_event: bool) -> BTreeSet<String> {
    TYPES.into_iter().chain(has_event.then_some("page-faults")).map(str::to_owned).collect()
}

/// Whether perf events are granted to the agent on this machine.
fn has_perf_events(home: &Path) -> bool {
    let run = JavaRun::new(home, "Demo").argument(0.1).agent(&format!("{EVENT},file=FILE"));
    let run = run.run().expect_success();
    !run.stderr.contains("event=page-faults is off: ")
}

#[test]
fn all_engines_run_together_and_their_counts_add_up() {
    let soak = std::env::var(SECONDS).ok().map(|seconds| seconds.parse().expect("a number"));
    let seconds: f64 = soak.unwrap_or(4.0);
    let mut homes = newest_or_all();
    if soak.is_some() {
        homes.sort_by_key(|home| std::cmp::Reverse(java_version(home)));
        homes.truncate(1);
    }
    for home in homes {
        let has_event = has_perf_events(&home);
        let engines = if soak.is_some() { DEFAULTS } else { DENSE };
        let mut options = format!("{engines},{TRACE},file=FILE");
        if has_event {
            options = format!("{options},{EVENT}");
        } else {
            not_tested("an event beside the other engines, since perf events are not granted");
        }
        let program = |seconds: f64| {
            JavaRun::new(&home, "MixedWork")
                .argument(seconds)
                .jvm_option("-Xmx256m")
                .lasting(Duration::from_secs_f64(seconds))
        };
        let without = program(seconds).run().expect_success();
        // The longer runs are for the case that other programs have used the CPU.
        let runs = [1.0, 5.0, 25.0].map(|factor| factor * seconds).into_iter();
        let mut runs = runs.map(|seconds| program(seconds).agent(&options).run().expect_success());
        let has_all_types = |run: &Finished| profile_types(&run.messages()) == types_with(has_event);
        let run = runs.find(has_all_types).unwrap_or_else(|| panic!("{}: not all types", home.display()));
        for complaint in ["is off", "internal error"] {
            assert!(!run.stderr.contains(complaint), "{}: {}", run.label, run.stderr);
        }
        assert_counters_add_up(&run, has_event);
        assert_engines_report_themselves(&run);
        if soak.is_some() {
            assert_all_exceptions_are_accounted_for(&run);
        } else {
            assert_all_exceptions_are_reported(&run);
        }
        println!("{}", report(&run, &without));
    }
}

/// Samples of every engine have the times at which they were taken: in place of a count, and beside each of
/// several values.
#[test]
fn samples_of_every_engine_have_their_times() {
    let home = newest_or_all().pop().unwrap();
    let has_event = has_perf_events(&home);
    let event = if has_event { EVENT } else { "event=off" };
    if !has_event {
        not_tested("the times of a perf event's samples, since perf events are not granted");
    }
    let options = format!("{DENSE},{TRACE},{event},timestamps,file=FILE");
    // The longer runs are for the case that other programs have used the CPU.
    let mut runs = [2, 10, 50].into_iter().map(|seconds| {
        let run = JavaRun::new(&home, "MixedWork").argument(seconds).jvm_option("-Xmx256m");
        run.agent(&options).run().expect_success()
    });
    let has_all_types = |run: &Finished| profile_types(&run.messages()) == types_with(has_event);
    let run = runs.find(has_all_types).unwrap_or_else(|| panic!("{}: not all types", home.display()));
    let messages = run.messages();
    assert_all_exceptions_are_reported(&run);
    for message in &messages {
        let lookup = Lookup::new(&message.data);
        for profile in &message.data.resource_profiles[0].scope_profiles[0].profiles {
            let (kind, unit) = lookup.value_type(profile.sample_type);
            let window = profile.time_unix_nano..profile.time_unix_nano + profile.duration_nano;
            for sample in &profile.samples {
                let (times, values) = (&sample.timestamps_unix_nano, &sample.values);
                if times.is_empty() {
                    // A large number of objects is given as a count, without times.
                    assert!(unit == "count" && kind.ends_with("objects"), "{}: {kind}", run.label);
                    continue;
                }
                let beside = if unit == "count" { 0 } else { times.len() };
                assert_eq!(values.len(), beside, "{}: {kind}", run.label);
                assert!(times.iter().all(|time| window.contains(time)), "{}: {kind}", run.label);
            }
        }
    }
}

/// For each engine every sample that was taken is either in the profiles, or lost and counted. The intervals'
/// counts add up to the session's.
fn assert_counters_add_up(run: &Finished, has_event: bool) {
    let of_handler = |what: &str| format!("handler.samples_{what}");
    let [taken, recorded, dropped, filtered] =
        ["taken", "recorded", "dropped", "filtered"].map(|what| run.counter(&of_handler(what)));
    assert_eq!(taken, recorded + dropped + filtered, "{}: {}", run.label, run.stderr);
    assert!(recorded > 0, "{}: {}", run.label, run.stderr);
    let sums = sums_of_counters(&run.messages());
    let checked_sum = |name: &str| {
        let sum = sums.get(&format!("otlpprof.{name}")).copied().unwrap_or(0);
        assert_eq!(sum, run.counter(name), "{}: {name}: {}", run.label, run.stderr);
        sum
    };
    let outcomes = ["taken", "recorded", "dropped", "filtered", "thinned"];
    let mut of_engines = [0; 5];
    for engine in Engine::ALL {
        let counts = outcomes.map(|what| checked_sum(&format!("{}.samples_{what}", engine.name())));
        let [taken, recorded, dropped, filtered, _] = counts;
        let label = format!("{}: {}: {counts:?}", run.label, engine.name());
        assert_eq!(taken, recorded + dropped + filtered, "{label}");
        assert_eq!(taken > 0, checked_sum(&format!("{}.samples_ns", engine.name())) > 0, "{label}");
        assert_eq!(taken > 0, engine != Engine::Event || has_event, "{label}");
        for (sum, count) in of_engines.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    assert_eq!(of_engines, outcomes.map(|what| checked_sum(&of_handler(what))), "{}", run.label);
}

/// Each engine's sample counts are in profiles of that engine. Of objects that live on, there may be none in
/// the interval in which they are sampled.
fn assert_engines_report_themselves(run: &Finished) {
    let types_of = |engine: Engine| match engine {
        Engine::Cpu => &["cpu"],
        Engine::Wall => &["wall"],
        Engine::Alloc => &["alloc-space", "alloc-objects"][..],
        Engine::Lock => &["lock-contention"],
        Engine::Wait => &["wait"],
        Engine::Exceptions => &["exceptions"],
        Engine::Event => &["page-faults"],
        Engine::NativeMemory => &["nativemem"],
        Engine::Trace => &["trace"],
        Engine::Live => &TYPES,
    };
    for message in run.messages() {
        let lookup = Lookup::new(&message.data);
        for profile in &message.data.resource_profiles[0].scope_profiles[0].profiles {
            let attributes = &profile.attribute_indices;
            let profile_type = lookup.attribute_text(attributes, "profile.type").unwrap();
            for engine in Engine::ALL {
                let key = format!("otlpprof.{}.samples_recorded", engine.name());
                let is_there = lookup.attributes(attributes).any(|(found, _)| found == key);
                assert!(
                    !is_there || types_of(engine).contains(&profile_type),
                    "{}: {key} in {profile_type}",
                    run.label
                );
            }
        }
    }
}

/// The sums of the counters of all intervals.
fn sums_of_counters(messages: &[Message]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for message in messages {
        let lookup = Lookup::new(&message.data);
        for profile in &message.data.resource_profiles[0].scope_profiles[0].profiles {
            for (key, value) in lookup.attributes(&profile.attribute_indices) {
                if let Some(Value::IntValue(count)) = value {
                    *sums.entry(key.to_owned()).or_default() += count.unsigned_abs();
                }
            }
        }
    }
    sums
}

/// Each exception that the program throws is a sample, unless the sample was dropped and counted.
fn assert_all_exceptions_are_reported(run: &Finished) {
    let (found, thrown) = exceptions(run);
    let dropped = sums_of_counters(&run.messages()).get("otlpprof.exceptions.samples_dropped").copied();
    let most = thrown as i64;
    let least = most - dropped.unwrap_or(0).cast_signed();
    assert!((least..=most).contains(&found), "{}: {found} of {thrown}, {dropped:?} dropped", run.label);
}

/// All exceptions are accounted for, however few were sampled: the limit is lower than the number that the
/// program throws in a second, and so is the budget.
fn assert_all_exceptions_are_accounted_for(run: &Finished) {
    let (found, thrown) = exceptions(run);
    let recorded = sums_of_counters(&run.messages())["otlpprof.exceptions.samples_recorded"].cast_signed();
    let sum = Estimate::of([(recorded, found as f64 / recorded as f64)]);
    sum.assert_near(thrown..=thrown, &format!("{}: exceptions", run.label));
}

/// The number of exceptions of the program's class in the profiles, and the program's own count.
fn exceptions(run: &Finished) -> (i64, f64) {
    let thrown: f64 = run.stdout.trim().parse().expect("a number");
    let stacks = stacks_of(&run.messages(), "exceptions", ("exceptions", "count"));
    let is_thrown = |class: &String| class == "java.lang.IllegalArgumentException";
    let of_class = stacks.iter().filter(|stack| stack.labels.get(EXCEPTION_TYPE).is_some_and(is_thrown));
    (of_class.map(|stack| stack.value).sum(), thrown)
}

/// The cost of the agent, as text.
fn report(run: &Finished, without: &Finished) -> String {
    let counter = |name: &str| run.counter(name);
    let percent = |ns: u64| ns as f64 / run.cpu.as_nanos() as f64 * 100.0;
    let mib = |run: &Finished| run.peak_memory_kib as f64 / 1024.0;
    let messages = run.messages();
    let written: u64 = run.files().iter().map(|file| file.metadata().map_or(0, |file| file.len())).sum();
    format!(
        "{}: {} samples ({} left to others to stand for, {} dropped) in {} messages of {written} bytes; \
         handlers {:.2} %, signals {:.2} %, threads {:.2} % of {:?} CPU ({:?} without the agent); {:.1} MiB \
         resident at most ({:.1} without)",
        run.label,
        counter("handler.samples_recorded"),
        counter("handler.samples_thinned"),
        counter("handler.samples_dropped"),
        messages.len(),
        percent(counter("handler.handler_ns")),
        percent(counter("agent.signals_ns")),
        percent(counter("agent.threads_ns")),
        run.cpu,
        without.cpu,
        mib(run),
        mib(without),
    )
}
