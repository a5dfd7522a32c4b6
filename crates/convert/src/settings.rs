//! The settings in recordings: the period between samples, and the clocks that triggered them.

use std::collections::HashMap;

use otlpprof_jfr::chunk::Chunk;
use otlpprof_jfr::values::{Struct, Value};

use super::events::{Period, Subset, known_name};

/// The event that contains a setting.
pub(super) const SETTING: &str = "jdk.ActiveSetting";

/// A program that writes chunks. A recording may contain chunks of several writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Writer {
    /// The JVM, or a native image.
    #[default]
    Jvm,
    AsyncProfiler,
    Datadog,
}

impl Writer {
    const ALL: usize = 3;

    /// The writer of a chunk, recognised by a type that occurs in all chunks of this writer and in no others.
    fn of(chunk: Chunk<'_>) -> Self {
        let has = |name| chunk.metadata().find_by_name(name).is_some();
        if has("datadog.ExecutionSample") {
            Self::Datadog
        } else if has("profiler.Log") {
            Self::AsyncProfiler
        } else {
            Self::Jvm
        }
    }
}

/// The settings of a recording while no chunk is open, by their writer.
#[derive(Debug, Default)]
pub(super) struct KeptSettings {
    of: [Settings; Writer::ALL],
}

impl KeptSettings {
    /// The settings at the beginning of a chunk: the last ones of its writer. async-profiler writes its
    /// settings only in the first chunk of a recording (4.6, `Recording::switchChunk` in
    /// `flightRecorder.cpp`).
    pub(super) fn take(&mut self, chunk: Chunk<'_>) -> Settings {
        let writer = Writer::of(chunk);
        let values = std::mem::take(&mut self.of[writer as usize].values);
        Settings { writer, is_inherited: true, values }
    }

    /// Keeps the settings of a chunk that has ended.
    pub(super) fn put(&mut self, settings: Settings) {
        let writer = settings.writer;
        self.of[writer as usize] = settings;
    }
}

/// The settings in one chunk (`jdk.ActiveSetting`), by event and name.
#[derive(Debug, Default)]
pub(super) struct Settings {
    writer: Writer,
    /// Whether all settings come from an earlier chunk. The first setting of the present chunk discards them:
    /// a writer that writes settings writes all of them.
    is_inherited: bool,
    values: HashMap<(String, String), String>,
}

impl Settings {
    /// Takes a setting.
    pub(super) fn note(&mut self, setting: &Struct<'_>) {
        let chunk = setting.chunk();
        let text = |name| setting.get(name).and_then(|value| chunk.text(value));
        let id = setting.get("id").as_ref().and_then(Value::as_i64).and_then(|id| chunk.metadata().find(id));
        if let (Some(of), Some(name), Some(value)) = (id, text("name"), text("value")) {
            if std::mem::take(&mut self.is_inherited) {
                self.values.clear();
            }
            let event = known_name(&chunk.metadata().get(of).name).to_owned();
            self.values.insert((event, name.into_owned()), value.into_owned());
        }
    }

    fn get(&self, event: &str, name: &str) -> Option<&str> {
        self.values.get(&(event.to_owned(), name.to_owned())).map(String::as_str)
    }

    /// The period between samples, in the unit of the profile's period, for events that do not contain it.
    pub(super) fn period(&self, period: &Period) -> i64 {
        let mut noted = period.settings.iter().filter_map(|(event, name)| self.get(event, name));
        let default = match self.writer {
            Writer::AsyncProfiler => period.async_profiler_default,
            Writer::Jvm | Writer::Datadog => period.default,
        };
        noted.find_map(parse_period).filter(|&period| period > 0).unwrap_or(default)
    }

    /// The clocks that trigger `jdk.ExecutionSample`. async-profiler uses the CPU clock, the wall clock, or
    /// both; in the last case each event's state distinguishes them.
    pub(super) fn execution_clocks(&self) -> Clocks {
        if self.writer != Writer::AsyncProfiler {
            return Clocks::Cpu;
        }
        let event = self.event();
        if event == Some("wall") {
            Clocks::Wall
        } else if self.get("jdk.ExecutionSample", "wall").is_none() {
            Clocks::Cpu
        } else if event.is_none() {
            Clocks::Wall
        } else {
            Clocks::ByState
        }
    }

    /// The event that triggers async-profiler's samples, if it is not a clock: a hardware counter, a
    /// tracepoint, a method.
    pub(super) fn counted_event(&self) -> Option<&str> {
        self.event().filter(|event| self.writer == Writer::AsyncProfiler && !CLOCKS.contains(event))
    }

    fn event(&self) -> Option<&str> {
        self.get("jdk.ActiveRecording", "event").filter(|event| !event.is_empty())
    }
}

/// async-profiler's names of clocks. For `cpu-clock` it requests the kernel's event that it also uses for
/// `cpu`.
const CLOCKS: [&str; 5] = ["cpu", "cpu-clock", "ctimer", "itimer", "wall"];

/// The clocks that trigger the samples of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clocks {
    Cpu,
    Wall,
    /// Samples of the CPU clock have no state, since their thread is known to run.
    ByState,
}

impl Clocks {
    /// Whether a sample belongs to this subset of events.
    pub(super) fn are(self, only: Subset, has_state: bool) -> bool {
        let by_wall = match self {
            Self::Cpu => false,
            Self::Wall => true,
            Self::ByState => has_state,
        };
        match only {
            Subset::All => true,
            Subset::CpuClock => !by_wall,
            Subset::WallClock => by_wall,
        }
    }
}

/// Parses a period such as `20 ms` or `1 s`, or a number without unit, to nanoseconds. 0 is valid.
fn parse_period(text: &str) -> Option<i64> {
    let (number, unit) = text.split_once(' ').unwrap_or((text, "ns"));
    let nanos = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(nanos).filter(|&period| period >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(of: &[(&str, &str, &str)]) -> Settings {
        let owned = |&(event, name, value): &(&str, &str, &str)| ((event.into(), name.into()), value.into());
        Settings { values: of.iter().map(owned).collect(), ..Settings::default() }
    }

    fn of_async_profiler(of: &[(&str, &str, &str)]) -> Settings {
        Settings { writer: Writer::AsyncProfiler, ..settings(of) }
    }

    #[test]
    fn the_first_setting_that_is_a_time_counts() {
        let period = Period {
            field: None,
            settings: &[("a", "period"), ("a", "interval")],
            default: 7,
            async_profiler_default: 8,
        };
        assert_eq!(settings(&[]).period(&period), 7);
        assert_eq!(settings(&[("a", "interval", "2000000")]).period(&period), 2_000_000);
        assert_eq!(settings(&[("a", "interval", "0")]).period(&period), 7);
        let both = settings(&[("a", "interval", "1"), ("a", "period", "20 ms")]);
        assert_eq!(both.period(&period), 20_000_000);
        let unclear = settings(&[("a", "period", "everyChunk"), ("a", "interval", "3 us")]);
        assert_eq!(unclear.period(&period), 3_000);
    }

    /// Regression: the value 0 of the wall clock's setting fell through to the CPU clock's interval, and the
    /// value 0 of that to the JVM's period.
    #[test]
    fn a_setting_of_0_asks_for_the_writers_default() {
        let period = Period {
            field: None,
            settings: &[("a", "wall"), ("a", "interval")],
            default: 7,
            async_profiler_default: 8,
        };
        let both = [("a", "wall", "0"), ("a", "interval", "1000")];
        assert_eq!((settings(&both).period(&period), of_async_profiler(&both).period(&period)), (7, 8));
        assert_eq!(of_async_profiler(&both[1..]).period(&period), 1_000);
        assert_eq!(of_async_profiler(&[]).period(&period), 8);
    }

    #[test]
    fn only_async_profiler_samples_by_events_that_are_no_clocks() {
        let by = |event| [("jdk.ActiveRecording", "event", event)];
        for clock in ["", "cpu", "cpu-clock", "ctimer", "itimer", "wall"] {
            assert_eq!(of_async_profiler(&by(clock)).counted_event(), None, "{clock}");
        }
        assert_eq!(of_async_profiler(&[]).counted_event(), None);
        assert_eq!(of_async_profiler(&by("page-faults")).counted_event(), Some("page-faults"));
        assert_eq!(settings(&by("page-faults")).counted_event(), None);
    }

    #[test]
    fn samples_of_two_clocks_are_distinguished_by_their_state() {
        assert!(Clocks::ByState.are(Subset::CpuClock, false) && Clocks::ByState.are(Subset::WallClock, true));
        assert!(
            !Clocks::ByState.are(Subset::CpuClock, true) && !Clocks::ByState.are(Subset::WallClock, false)
        );
        assert!(Clocks::Cpu.are(Subset::CpuClock, true) && !Clocks::Cpu.are(Subset::WallClock, true));
        assert!(Clocks::Wall.are(Subset::WallClock, false) && Clocks::Wall.are(Subset::All, false));
    }
}
