//! The two lines that announce that profiling has begun, and that it has ended; and the line about engines
//! that have taken nothing.

use std::time::Duration;

use otlpprof_core::engine::Engine;
use otlpprof_export::pattern::PathPattern;
use otlpprof_options::{Options, RecordedEvents};

use crate::engines::{description, enabled};

/// The line at the start: version, engines, clock, stack walker and destination. `clock` is the name of the
/// CPU clock.
pub(super) fn start_line(options: &Options, clock: Option<&str>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let engines = engines(options).join(", ");
    let clock = clock.map(|clock| format!(" by the {clock} clock")).unwrap_or_default();
    let walker = options.stack_walker.name();
    let destinations = destinations(options).join(" and ");
    let interval = options.interval;
    format!(
        "version {version} profiles {engines}{clock}; stack walker {walker}; every {interval:?} to \
         {destinations}"
    )
}

/// The line at the end. `counts` are the session's counters by name.
pub(super) fn end_line(options: &Options, elapsed: Duration, counts: &[(&str, u64)]) -> String {
    let count = |wanted: &str| count_of(counts, wanted);
    let samples = numbered(count("handler.samples_recorded"), "sample");
    let mut line = format!("profiling has ended after {:.1}s: {samples} taken", elapsed.as_secs_f64());
    let mut add = |count: u64, text: String| {
        if count > 0 {
            line.push_str(&text);
        }
    };
    let dropped = count("handler.samples_dropped");
    add(dropped, format!(", {dropped} dropped"));
    let recorded = count("jfr.events");
    add(recorded, format!(", and {} of the JVM's recorder", numbered(recorded, "event")));
    if let Some(file) = file(options) {
        let written = numbered(count("file.written.messages"), "message");
        add(1, format!("; {written} written to {file}"));
        let failed = count("file.failed.messages");
        add(failed, format!(", {failed} not written"));
    }
    if let Some(upload) = &options.upload {
        let sent = numbered(count("upload.sent.messages"), "message");
        add(1, format!("; {sent} uploaded to {}", upload.endpoint.shown()));
        // A message that was split is submitted again as its parts.
        let arrived = count("upload.sent.messages") + count("upload.split.messages");
        let missing = count("upload.submitted.messages").saturating_sub(arrived);
        add(missing, format!(", {missing} not uploaded"));
    }
    line
}

/// The warning at the end about engines that were on and have taken nothing, since the system has refused
/// what they need. `refusal` gives what the system has refused an engine, in words.
pub(super) fn nothing_taken(
    options: &Options,
    counts: &[(&str, u64)],
    refusal: impl Fn(Engine) -> Option<String>,
) -> Option<String> {
    let idle =
        enabled(options).filter(|engine| count_of(counts, &format!("{}.samples_taken", engine.name())) == 0);
    let described =
        idle.filter_map(|engine| Some(format!("no sample of {}: {}", engine.name(), refusal(engine)?)));
    let described: Vec<_> = described.collect();
    (!described.is_empty()).then(|| described.join("; "))
}

fn count_of(counts: &[(&str, u64)], wanted: &str) -> u64 {
    let is_wanted = |name: &str| name.strip_prefix("otlpprof.") == Some(wanted);
    counts.iter().find(|(name, _)| is_wanted(name)).map_or(0, |(_, count)| *count)
}

/// The engines that are on, with the intervals of those that sample time.
pub(super) fn engines(options: &Options) -> Vec<String> {
    let described = |engine: Engine| {
        let detail = (description(engine).detail)(options);
        if detail.is_empty() { engine.name().to_owned() } else { format!("{} {detail}", engine.name()) }
    };
    let mut engines: Vec<_> = enabled(options).map(described).collect();
    if options.recorded_events != RecordedEvents::None {
        engines.push("jfr".to_owned());
    }
    if engines.is_empty() {
        engines.push("no engine".to_owned());
    }
    engines
}

/// The file and the collector, as far as they are requested.
pub(super) fn destinations(options: &Options) -> Vec<String> {
    if options.has_no_destination() {
        return vec!["the command that reads along".to_owned()];
    }
    let upload = options.upload.as_ref().map(|upload| upload.endpoint.shown());
    file(options).into_iter().chain(upload).collect()
}

/// The file, with process and host in its name.
fn file(options: &Options) -> Option<String> {
    let file = options.file.as_ref()?;
    Some(PathPattern::parse(file).map_or_else(|_| file.clone(), |pattern| pattern.shown()))
}

fn numbered(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use otlpprof_options::{Environment, Request, parse};

    use super::*;

    fn options(text: &str) -> Options {
        match parse(text, &Environment::default()) {
            Ok(Request::Start(options)) => *options,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_start_is_one_line_with_engines_clock_walker_and_destinations() {
        let options =
            options("wall=20ms,alloc,event=page-faults,jfr,file=/tmp/a.otlp,endpoint=http://c:4318?k=v");
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            start_line(&options, Some("perf")),
            format!(
                "version {version} profiles cpu every 10ms, wall every 20ms, alloc, event page-faults, jfr \
                 by the perf clock; stack walker vm; every 10s to /tmp/a.otlp and \
                 http://c:4318/v1development/profiles"
            )
        );
    }

    /// Regression: lines and answers named a file that does not exist.
    #[test]
    fn files_are_named_as_they_are_called() {
        let pid = std::process::id();
        let options = options("file=/tmp/%p.otlp");
        assert_eq!(destinations(&options), [format!("/tmp/{pid}.otlp")]);
        let line = end_line(&options, Duration::from_secs(2), &[]);
        assert!(line.ends_with(&format!("; 0 messages written to /tmp/{pid}.otlp")), "{line}");
    }

    #[test]
    fn the_end_is_one_line_that_names_missing_samples() {
        let both = options("file=/tmp/a.otlp,endpoint=http://c:4318");
        let counts = [
            ("otlpprof.handler.samples_recorded", 1),
            ("otlpprof.handler.samples_dropped", 7),
            ("otlpprof.file.written.messages", 3),
            ("otlpprof.upload.submitted.messages", 5),
            ("otlpprof.upload.sent.messages", 2),
            ("otlpprof.upload.split.messages", 1),
        ];
        assert_eq!(
            end_line(&both, Duration::from_millis(1_260), &counts),
            "profiling has ended after 1.3s: 1 sample taken, 7 dropped; 3 messages written to /tmp/a.otlp; \
             2 messages uploaded to http://c:4318/v1development/profiles, 2 not uploaded"
        );
        assert_eq!(
            end_line(&options("file=/x"), Duration::from_secs(2), &[("otlpprof.jfr.events", 4)]),
            "profiling has ended after 2.0s: 0 samples taken, and 4 events of the JVM's recorder; \
             0 messages written to /x"
        );
    }

    /// Regression: an engine to which the system refused every signal ended in silence.
    #[test]
    fn engines_that_have_taken_nothing_are_named_with_the_reason() {
        let options = options("wall,event=page-faults,alloc,file=/x");
        let refusal = |engine| match engine {
            Engine::Cpu => Some("no clock".to_owned()),
            Engine::Wall => Some("no room".to_owned()),
            Engine::Event => Some("refused once".to_owned()),
            _ => None,
        };
        let line = |counts: &[(&str, u64)]| nothing_taken(&options, counts, refusal);
        let event = ("otlpprof.event.samples_taken", 2);
        assert_eq!(line(&[event]).unwrap(), "no sample of cpu: no clock; no sample of wall: no room");
        let others = [event, ("otlpprof.cpu.samples_taken", 1), ("otlpprof.wall.samples_taken", 1)];
        assert_eq!(line(&others), None);
    }
}
