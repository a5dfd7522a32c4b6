//! Events and their interval as async-profiler's command takes them, as options of the agent.
//!
//! Source of the names: async-profiler 4, docs/ProfilerOptions.md, `-e` and `-i`.

use super::agent_string::{items, name, sets};

/// Events that are options of the agent of the same name. A bare number as the interval of the first ones has
/// nanoseconds.
const TIMED: [&str; 4] = ["cpu", "wall", "lock", "wait"];
const COUNTED: [&str; 4] = ["alloc", "live", "nativemem", "exceptions"];
/// Clocks of CPU samples that async-profiler has as events.
const CLOCKS: [(&str, &str); 2] = [("itimer", "cpu.clock=itimer"), ("ctimer", "cpu.clock=timer")];

/// The events that are sampled, and how often.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct EventArgs {
    /// Sample this event instead of CPU time: cpu, wall, alloc, lock, nativemem, a perf event such as
    /// cache-misses; may be given several times. Short for the agent's options, such as wall,cpu=off
    #[arg(short, long, value_name = "EVENT", value_delimiter = ',')]
    event: Vec<String>,
    /// The interval between two samples of the event: -e cpu -i 5ms is cpu=5ms
    #[arg(short, long, value_name = "INTERVAL")]
    interval: Option<String>,
}

/// Events that the agent's options cannot express beside those that are given.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum EventError {
    #[error("--interval: several events have intervals of their own; write options such as cpu=5ms,alloc=1m")]
    SeveralIntervals,
    #[error("{0} is among the options and among the events; write it once")]
    Twice(String),
    #[error("--event: at most one perf event, but there are {0} and {1}")]
    SeveralPerfEvents(String, String),
    #[error("{0}: an interval may not contain a comma, and an event may not contain an equals sign")]
    Separator(String),
}

impl EventArgs {
    /// The agent string with the options of the events at its end.
    pub(super) fn with_events(&self, given: &str) -> Result<String, EventError> {
        let options = self.options()?;
        if let Some(twice) = options.iter().map(|item| name(item)).find(|name| sets(given, name)) {
            return Err(EventError::Twice(twice.to_owned()));
        }
        let is_chosen = !options.is_empty() && !sets(given, "cpu");
        let without_cpu = is_chosen && !options.iter().any(|item| name(item) == "cpu");
        let without_cpu = without_cpu.then(|| "cpu=off".to_owned());
        let all = items(given).map(str::to_owned).chain(options).chain(without_cpu);
        Ok(all.collect::<Vec<_>>().join(","))
    }

    fn options(&self) -> Result<Vec<String>, EventError> {
        let events: Vec<_> = match (&self.event[..], &self.interval) {
            ([], None) => return Ok(Vec::new()),
            // The event that async-profiler samples by itself.
            ([], Some(_)) => vec!["cpu"],
            (events, _) => events.iter().map(String::as_str).collect(),
        };
        if self.interval.is_some() && events.len() > 1 {
            return Err(EventError::SeveralIntervals);
        }
        let words = events.iter().copied().chain(self.interval.as_deref());
        if let Some(word) = words.into_iter().find(|word| word.contains([',', '='])) {
            return Err(EventError::Separator(word.to_owned()));
        }
        let mut options: Vec<String> = Vec::new();
        for event in events {
            for option in options_of(event, self.interval.as_deref()) {
                let is_same = |other: &&String| name(other) == name(&option);
                match options.iter().find(is_same) {
                    Some(other) if name(&option) == "event" => {
                        let perf_event = |item: &str| item["event=".len()..].to_owned();
                        return Err(EventError::SeveralPerfEvents(perf_event(other), perf_event(&option)));
                    }
                    Some(_) => return Err(EventError::Twice(name(&option).to_owned())),
                    None => options.push(option),
                }
            }
        }
        Ok(options)
    }
}

/// The options for an event.
fn options_of(event: &str, interval: Option<&str>) -> Vec<String> {
    let engine = |name: &str, unit: &str| match interval {
        None => name.to_owned(),
        Some(number) if number.bytes().all(|digit| digit.is_ascii_digit()) => {
            format!("{name}={number}{unit}")
        }
        Some(interval) => format!("{name}={interval}"),
    };
    if let Some((_, clock)) = CLOCKS.iter().find(|(name, _)| *name == event) {
        return vec![engine("cpu", "ns"), (*clock).to_owned()];
    }
    if TIMED.contains(&event) {
        return vec![engine(event, "ns")];
    }
    if COUNTED.contains(&event) {
        return vec![engine(event, "")];
    }
    let period = interval.map(|period| format!("event.period={period}"));
    [format!("event={event}")].into_iter().chain(period).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(given: &str, events: &[&str], interval: Option<&str>) -> Result<String, EventError> {
        let event = events.iter().map(|&event| event.to_owned()).collect();
        EventArgs { event, interval: interval.map(str::to_owned) }.with_events(given)
    }

    #[test]
    fn events_become_options_of_the_agent() {
        for (events, interval, options) in [
            (&[][..], None, ""),
            (&["cpu"], Some("5ms"), "cpu=5ms"),
            (&[], Some("5ms"), "cpu=5ms"),
            (&["cpu"], Some("5000000"), "cpu=5000000ns"),
            (&["wall"], None, "wall,cpu=off"),
            (&["alloc"], Some("512k"), "alloc=512k,cpu=off"),
            (&["alloc"], Some("524287"), "alloc=524287,cpu=off"),
            (&["cpu", "alloc", "lock"], None, "cpu,alloc,lock"),
            (&["ctimer"], Some("1ms"), "cpu=1ms,cpu.clock=timer"),
            (&["itimer"], None, "cpu,cpu.clock=itimer"),
            (&["cache-misses"], Some("1000"), "event=cache-misses,event.period=1000,cpu=off"),
        ] {
            assert_eq!(with("", events, interval).unwrap(), options, "{events:?} {interval:?}");
        }
        assert_eq!(with("live", &["wall"], None).unwrap(), "live,wall,cpu=off");
        assert_eq!(with("cpu=1ms", &["wall"], None).unwrap(), "cpu=1ms,wall");
        // All of them are options that the agent knows.
        for name in TIMED.iter().chain(&COUNTED).chain(&["event", "event.period", "cpu.clock"]) {
            assert!(otlpprof_options::is_known(name), "{name}");
        }
    }

    #[test]
    fn events_that_options_cannot_express_are_refused() {
        assert_eq!(with("", &["cpu", "alloc"], Some("5ms")), Err(EventError::SeveralIntervals));
        assert_eq!(with("wall=1ms", &["wall"], None), Err(EventError::Twice("wall".to_owned())));
        assert_eq!(with("", &["cpu", "itimer"], None), Err(EventError::Twice("cpu".to_owned())));
        assert!(matches!(with("", &["cycles", "branches"], None), Err(EventError::SeveralPerfEvents(..))));
        assert!(matches!(with("", &["cpu"], Some("1ms,file=/x")), Err(EventError::Separator(_))));
        assert!(matches!(with("", &["cpu=1ms"], None), Err(EventError::Separator(_))));
    }
}
