//! What recordings note of their own settings: how far samples are apart, and which clocks have caused them.

use std::collections::HashMap;

use super::events::{Only, Period};
use crate::jfr::chunk::Chunk;
use crate::jfr::values::{Struct, Value};

/// The settings of one chunk (`jdk.ActiveSetting`), by event and name.
#[derive(Debug, Default)]
pub(super) struct Settings {
    values: HashMap<(String, String), String>,
}

impl Settings {
    /// The event that notes a setting.
    pub(super) const EVENT: &'static str = "jdk.ActiveSetting";

    /// Takes a setting.
    pub(super) fn note(&mut self, setting: &Struct<'_>) {
        let chunk = setting.chunk();
        let text = |name| setting.get(name).and_then(|value| chunk.text(value));
        let id = setting.get("id").as_ref().and_then(Value::as_i64).and_then(|id| chunk.metadata().find(id));
        if let (Some(of), Some(name), Some(value)) = (id, text("name"), text("value")) {
            let event = chunk.metadata().get(of).name.to_string();
            self.values.insert((event, name.into_owned()), value.into_owned());
        }
    }

    fn get(&self, event: &str, name: &str) -> Option<&str> {
        self.values.get(&(event.to_owned(), name.to_owned())).map(String::as_str)
    }

    /// How far samples are apart in nanoseconds, where the events do not say it themselves.
    pub(super) fn period_ns(&self, period: &Period) -> i64 {
        let noted = period.settings.iter().filter_map(|(event, name)| self.get(event, name));
        let mut noted = noted.filter_map(parse_period);
        noted.next().unwrap_or(period.default_ns)
    }

    /// Which clocks have caused `jdk.ExecutionSample`: with async-profiler this may be the wall clock alone, or both, when
    /// each event's state tells them apart.
    pub(super) fn execution_clocks(&self, chunk: Chunk<'_>) -> Clocks {
        // Its own type of log messages is in every chunk of async-profiler's, and in none of HotSpot's.
        if chunk.metadata().find_by_name("profiler.Log").is_none() {
            return Clocks::Cpu;
        }
        let event = self.get("jdk.ActiveRecording", "event");
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
}

/// What samples of one type were caused by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clocks {
    Cpu,
    Wall,
    /// Those of the CPU clock have no state; a thread is known to run.
    ByState,
}

impl Clocks {
    /// Whether a sample in this state is one of those.
    pub(super) fn are(self, only: Only, has_state: bool) -> bool {
        let by_wall = match self {
            Self::Cpu => false,
            Self::Wall => true,
            Self::ByState => has_state,
        };
        match only {
            Only::All => true,
            Only::CpuClock => !by_wall,
            Only::WallClock => by_wall,
        }
    }
}

/// `20 ms`, `1 s` and the like, or a bare number of nanoseconds; 0, which asks for the writer's default, is none.
fn parse_period(text: &str) -> Option<i64> {
    let (number, unit) = text.split_once(' ').unwrap_or((text, "ns"));
    let nanos = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(nanos).filter(|&period| period > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(of: &[(&str, &str, &str)]) -> Settings {
        let owned = |&(event, name, value): &(&str, &str, &str)| ((event.into(), name.into()), value.into());
        Settings { values: of.iter().map(owned).collect() }
    }

    #[test]
    fn the_first_setting_that_is_a_time_counts() {
        let period = Period { field: None, settings: &[("a", "period"), ("a", "interval")], default_ns: 7 };
        assert_eq!(settings(&[]).period_ns(&period), 7);
        assert_eq!(settings(&[("a", "interval", "2000000")]).period_ns(&period), 2_000_000);
        assert_eq!(settings(&[("a", "interval", "0")]).period_ns(&period), 7);
        let both = settings(&[("a", "interval", "1"), ("a", "period", "20 ms")]);
        assert_eq!(both.period_ns(&period), 20_000_000);
        let unclear = settings(&[("a", "period", "everyChunk"), ("a", "interval", "3 us")]);
        assert_eq!(unclear.period_ns(&period), 3_000);
    }

    #[test]
    fn samples_of_two_clocks_are_told_apart_by_their_state() {
        assert!(Clocks::ByState.are(Only::CpuClock, false) && Clocks::ByState.are(Only::WallClock, true));
        assert!(!Clocks::ByState.are(Only::CpuClock, true) && !Clocks::ByState.are(Only::WallClock, false));
        assert!(Clocks::Cpu.are(Only::CpuClock, true) && !Clocks::Cpu.are(Only::WallClock, true));
        assert!(Clocks::Wall.are(Only::WallClock, false) && Clocks::Wall.are(Only::All, false));
    }
}
