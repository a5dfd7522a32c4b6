//! The processes of profiles: in words, and as JSON.

use serde_json::{Value, json};

use otlpprof_model::{attribute_keys, types};
use otlpprof_report::measure::Measure;
use otlpprof_report::resource_survey::ResourceSurvey;

/// The most processes that are named in words.
const MOST_NAMED: usize = 3;

/// The processes with their programs, their runtime and their host in words; empty if no process is known.
pub(crate) fn in_words(resources: &ResourceSurvey) -> String {
    let named = resources.process_ids().take(MOST_NAMED).map(|pid| match resources.programs_of(pid) {
        programs if programs.is_empty() => pid.to_owned(),
        programs => format!("{pid} ({programs})"),
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let processes = match resources.process_ids().len() {
        0 => return String::new(),
        1 => format!("process {named}"),
        2..=MOST_NAMED => format!("processes {named}"),
        more => format!("{more} processes"),
    };
    let host = resources.shared(attribute_keys::HOST_NAME).map(|host| format!("host {host}"));
    [Some(processes), runtime(resources), host].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The processes, their runtime and their host. A runtime or host that processes do not share is null.
pub(super) fn add_json(resources: &ResourceSurvey, mut add: impl FnMut(&str, Value)) {
    let process = |pid| json!({ "pid": pid, "command": resources.programs_of(pid) });
    add("processes", resources.process_ids().map(process).collect());
    add("runtime", json!(runtime(resources)));
    add("host", json!(resources.shared(attribute_keys::HOST_NAME)));
}

/// The processors that were used on average, in words; `None` of another measure than CPU time.
pub(crate) fn cores(measure: &Measure, unit: &str, whole: i64, profiled_ns: u64) -> Option<String> {
    let is_cpu_time = measure.name == types::CPU.name && unit == "nanoseconds";
    let cores = whole as f64 / profiled_ns as f64;
    (is_cpu_time && profiled_ns > 0).then(|| format!("{cores:.2} cores on average"))
}

/// The runtime and its version, such as `OpenJDK 21.0.8+9`, if all processes have the same.
fn runtime(resources: &ResourceSurvey) -> Option<String> {
    let name = resources.shared(attribute_keys::PROCESS_RUNTIME_NAME)?;
    let name = name.strip_suffix(" Runtime Environment").unwrap_or(name);
    let version = resources.shared(attribute_keys::PROCESS_RUNTIME_VERSION).unwrap_or_default();
    Some(format!("{name} {version}").trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_described_by_what_they_share() {
        let mut survey = ResourceSurvey::default();
        assert_eq!(in_words(&survey), "");
        let mut add = |pid: &'static str, program: &'static str, host: &'static str| {
            survey.add([
                ("process.pid", pid.into()),
                ("process.command", program.into()),
                ("process.runtime.name", "OpenJDK Runtime Environment".into()),
                ("process.runtime.version", "21.0.8+9".into()),
                ("host.name", host.into()),
            ]);
            in_words(&survey)
        };
        assert_eq!(add("1", "shop.jar", "h"), "process 1 (shop.jar), OpenJDK 21.0.8+9, host h");
        assert_eq!(add("2", "", "h"), "processes 1 (shop.jar), 2, OpenJDK 21.0.8+9, host h");
        add("3", "a.B", "i");
        assert_eq!(add("4", "a.B", "i"), "4 processes, OpenJDK 21.0.8+9");
    }

    #[test]
    fn cores_are_those_of_cpu_time() {
        let measure = |name: &str| Measure { name: name.to_owned(), unit: "nanoseconds".to_owned() };
        let cores = |name, unit, profiled_ns| super::cores(&measure(name), unit, 3_000_000_000, profiled_ns);
        assert_eq!(cores("cpu", "nanoseconds", 2_000_000_000).as_deref(), Some("1.50 cores on average"));
        assert_eq!(cores("wall", "nanoseconds", 2_000_000_000), None);
        assert_eq!(cores("cpu", "count", 2_000_000_000), None);
        assert_eq!(cores("cpu", "nanoseconds", 0), None);
    }
}
