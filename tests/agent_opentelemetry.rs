//! The span that OpenTelemetry has as the current one is the samples' link.

mod agent_support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use agent_support::stacks::cpu_stacks;
use agent_support::{JavaRun, java_homes};

/// The class path of the module, its test program and OpenTelemetry's SDK, with the API's.
fn class_path() -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/package-opentelemetry.sh");
    let api = env!("OTLPPROF_API_CLASSES");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("opentelemetry");
    let output = Command::new(script).arg(api).arg(out).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    format!("{api}:{}", String::from_utf8(output.stdout).unwrap().trim())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn samples_are_linked_to_opentelemetrys_current_span() {
    let class_path = class_path();
    for home in java_homes() {
        let run = JavaRun::new(&home, "OpenTelemetrySpans")
            .api(Path::new(&class_path))
            .agent("cpu=1ms,file=FILE")
            .run()
            .expect_success();
        let spans: BTreeMap<_, _> = run.stdout.lines().filter_map(|line| line.split_once(' ')).collect();
        assert_eq!(spans.len(), 2, "{}: {}", run.label, run.stdout);
        let mut periods = BTreeMap::<_, i64>::new();
        for stack in cpu_stacks(&run.messages()) {
            let methods = [("burnOuter", "outer"), ("burnInner", "inner"), ("burnOutside", "outside")];
            let burning = methods
                .into_iter()
                .find(|(method, _)| stack.has(&format!("programs.OpenTelemetrySpans.{method}")));
            let Some((_, name)) = burning else { continue };
            let link = stack.link.as_ref();
            let link = link.map(|(trace, span)| format!("{} {}", hexadecimal(trace), hexadecimal(span)));
            assert_eq!(link.as_deref(), spans.get(name).copied(), "{}: {name}: {stack:?}", run.label);
            *periods.entry(name).or_default() += stack.value;
        }
        eprintln!("{}: {periods:?}", run.label);
        for name in ["outer", "inner", "outside"] {
            assert!(periods.get(name) >= Some(&50), "{}: {periods:?}", run.label);
        }
    }
}
