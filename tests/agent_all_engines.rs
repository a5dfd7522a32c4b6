//! All engines at once, at their defaults, over a program that has work for each.

mod agent_support;
mod loud_support;

use std::collections::BTreeSet;
use std::path::Path;

use agent_support::{JavaRun, java_homes, profiles};
use loud_support::not_tested;
use otlpprof::otlp::lookup::Lookup;

/// How long the program runs, if not for some seconds: `OTLPPROF_TEST_ENGINES_S=600` is a soak.
const SECONDS: &str = "OTLPPROF_TEST_ENGINES_S";

const ENGINES: &str = "cpu,wall,alloc,live=64k,lock,wait,exceptions,nativemem=256k";

const EVENT: &str = "event=page-faults:10";

/// Whether the agent may have perf events here.
fn has_perf_events(home: &Path) -> bool {
    let run = JavaRun::new(home, "Demo").argument(0.1).agent(&format!("{EVENT},file=FILE"));
    let run = run.run().expect_success();
    !run.stderr.contains("event=page-faults is off: ")
}

#[test]
fn all_engines_run_together_and_their_counts_add_up() {
    let soak = std::env::var(SECONDS).ok().map(|seconds| seconds.parse().expect("a number"));
    let seconds: f64 = soak.unwrap_or(4.0);
    for home in java_homes() {
        let has_event = has_perf_events(&home);
        let mut options = format!("{ENGINES},interval=1s,file=FILE");
        if has_event {
            options = format!("{options},{EVENT}");
        } else {
            not_tested("an event beside the other engines, since perf events are not granted");
        }
        // It has no time to settle in a short run, and might leave an engine without a sample.
        if soak.is_some() {
            options.push_str(",budget=2");
        }
        let run = || JavaRun::new(&home, "MixedWork").argument(seconds).jvm_option("-Xmx256m");
        let without = run().run().expect_success();
        let run = run().agent(&options).run().expect_success();
        for complaint in ["is off", "internal error"] {
            assert!(!run.stderr.contains(complaint), "{}: {}", run.label, run.stderr);
        }
        let counter = |name: &str| run.counter(name);
        let [taken, recorded, dropped, filtered] =
            ["taken", "recorded", "dropped", "filtered"].map(|of| counter(&format!("handler.samples_{of}")));
        assert_eq!(taken, recorded + dropped + filtered, "{}: {}", run.label, run.stderr);
        assert!(recorded > 100, "{}: {}", run.label, run.stderr);
        let messages = run.messages();
        let mut types = BTreeSet::new();
        for message in &messages {
            let lookup = Lookup::new(&message.data);
            for profile in &message.data.resource_profiles[0].scope_profiles[0].profiles {
                types.extend(
                    lookup.attribute_text(&profile.attribute_indices, "profile.type").map(str::to_owned),
                );
            }
        }
        for wanted in [
            "cpu",
            "wall",
            "alloc-space",
            "alloc-objects",
            "live-heap",
            "lock-contention",
            "wait",
            "exceptions",
            "nativemem",
        ]
        .into_iter()
        .chain(has_event.then_some("page-faults"))
        {
            assert!(types.contains(wanted), "{}: no {wanted} in {types:?}\n{}", run.label, run.stderr);
        }
        let late = messages.last().map(|message| profiles::profile_counter(message, "handler.handler_ns"));
        println!(
            "{}: {recorded} samples, handlers {:.2} %, threads {:.2} % of {:?} CPU ({:?} without), last interval's handlers {late:?} ns",
            run.label,
            counter("handler.handler_ns") as f64 / run.cpu.as_nanos() as f64 * 100.0,
            counter("agent.threads_ns") as f64 / run.cpu.as_nanos() as f64 * 100.0,
            run.cpu,
            without.cpu,
        );
    }
}
