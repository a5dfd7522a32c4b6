//! All engines at once, at their defaults, over a program that has work for each.

mod agent_support;

use std::collections::BTreeSet;

use agent_support::{JavaRun, java_homes, profiles};
use otlpprof::otlp::lookup::Lookup;

/// How long the program runs, if not for some seconds: `OTLPPROF_TEST_ENGINES_S=600` is a soak.
const SECONDS: &str = "OTLPPROF_TEST_ENGINES_S";

const ENGINES: &str = "cpu,wall,alloc,live=64k,lock,wait,exceptions,nativemem=256k,event=page-faults:10";

#[test]
fn all_engines_run_together_and_their_counts_add_up() {
    let seconds: f64 = std::env::var(SECONDS).map_or(4.0, |seconds| seconds.parse().expect("a number"));
    for home in java_homes() {
        let options = format!("{ENGINES},interval=1s,budget=2,file=FILE");
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
            "page-faults",
        ] {
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
