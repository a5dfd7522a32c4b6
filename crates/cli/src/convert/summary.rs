//! A summary of what became of the events.

use std::io::{self, Write as _};
use std::time::{Duration, UNIX_EPOCH};

use otlpprof_convert::{EventCount, JfrToOtlp, RequestedEvent};

use super::super::terminal;

/// Events that become no samples although they belong to a converted kind of profile, with an explanation of
/// each.
const EXPLAINED: [(&str, &str); 1] = [(
    "profiler.Free",
    "blocks of native memory were freed; nativemem profiles include them, since they count all allocations",
)];

/// A line for each requested event that does not occur.
pub(super) fn missing(asked_for: &[RequestedEvent], is_there: impl Fn(&str) -> bool) -> Vec<String> {
    let missing = asked_for.iter().filter(|event| !is_there(event.name()));
    missing.map(|event| format!("no event {} in the recordings", event.name())).collect()
}

/// The counts of all events, by type.
pub(super) struct Summary {
    counts: Vec<(String, EventCount)>,
    lost_samples: u64,
}

impl Summary {
    /// The counts so far.
    pub(super) fn of(converter: &JfrToOtlp) -> Self {
        let mut counts: Vec<_> = converter.counts().map(|(name, count)| (name.to_owned(), count)).collect();
        counts.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self { counts, lost_samples: converter.lost_samples() }
    }

    /// Whether there were no events.
    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Number of events that became samples.
    pub(super) fn converted(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count.converted).sum()
    }

    /// Says that no event became a sample, and why. `recorded` is the recordings' time range, in ns since
    /// 1970-01-01 UTC.
    pub(super) fn nothing(&self, recordings: &str, recorded: Option<(i64, i64)>) -> String {
        let outside: u64 = self.counts.iter().map(|(_, count)| count.outside).sum();
        if outside == 0 {
            return format!(
                "nothing to convert in {recordings}: none of its events is converted by default; --event \
                 NAME converts others"
            );
        }
        let time = |unix_nano: i64| {
            let since = Duration::from_nanos(unix_nano.max(0).cast_unsigned());
            humantime::format_rfc3339_millis(UNIX_EPOCH + since).to_string()
        };
        let are_of =
            recorded.map(|(start, end)| format!("; the recording spans {} to {}", time(start), time(end)));
        format!(
            "nothing to convert in {recordings}: the window of --from and --to has no event, and {outside} \
             lie outside{}",
            are_of.unwrap_or_default()
        )
    }

    /// The names of the events that occurred.
    pub(super) fn events(&self) -> impl Iterator<Item = &str> {
        self.counts.iter().map(|(name, _)| &**name)
    }

    /// Prints a line for each type that can be converted, one line for all other types, and one for each
    /// problem.
    pub(super) fn print(&self, problems: &[String]) -> io::Result<()> {
        let mut printed = terminal::stderr();
        for (name, count) in &self.counts {
            if count.converted + count.without_value + count.outside == 0 {
                continue;
            }
            let of_those = if count.without_stack > 0 { " of those" } else { "" };
            write!(
                printed,
                "{name}: {} converted, {}{of_those} without a stack",
                count.converted, count.without_stack
            )?;
            if count.failed > 0 {
                write!(
                    printed,
                    ", {} of those converted with a stack that the JVM could not walk",
                    count.failed
                )?;
            }
            if count.without_value > 0 {
                write!(printed, ", {} with no value above 0", count.without_value)?;
            }
            if count.outside > 0 {
                write!(printed, ", {} outside of the window", count.outside)?;
            }
            writeln!(printed)?;
        }
        if self.lost_samples > 0 {
            writeln!(printed, "{} samples of CPU time were lost by the JVM", self.lost_samples)?;
        }
        let explanation = |name: &str| EXPLAINED.iter().find(|(explained, _)| *explained == name);
        for (name, count) in self.counts.iter().filter(|(_, count)| count.other > 0) {
            if let Some((_, what)) = explanation(name) {
                writeln!(printed, "{name}: {} {what}", count.other)?;
            }
        }
        let others =
            self.counts.iter().filter(|(name, count)| count.other > 0 && explanation(name).is_none());
        let others: Vec<_> = others.map(|(name, count)| format!("{name} {}", count.other)).collect();
        if !others.is_empty() {
            writeln!(printed, "not converted: {}", others.join(", "))?;
        }
        for problem in problems {
            writeln!(printed, "otlpprof: {problem}")?;
        }
        Ok(())
    }
}
