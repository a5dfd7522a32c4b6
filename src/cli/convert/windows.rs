//! Times and windows of recordings, as given on the command line.

use std::time::Duration;

use anyhow::bail;

use crate::cli::rfc3339;
use crate::convert::Window;

const NANOS_PER_SECOND: f64 = 1e9;

/// A bound of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// A time in nanoseconds since 1970-01-01 UTC.
    At(i64),
    /// Nanoseconds after the recording's beginning.
    AfterStart(i64),
}

/// A window with bounds that may be relative to the recording's beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    start: Option<Bound>,
    end: Option<Bound>,
}

impl Bounds {
    /// Whether a bound is relative to the recording's beginning.
    pub(super) fn are_relative(&self) -> bool {
        [self.start, self.end].iter().any(|bound| matches!(bound, Some(Bound::AfterStart(_))))
    }

    /// Whether no bound was given.
    pub(super) fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// The window of a recording. Relative bounds are omitted if the recording's beginning is not known.
    pub(super) fn window(&self, begins_unix_nano: Option<i64>) -> Window {
        let of = |bound: Option<Bound>| match bound? {
            Bound::At(unix_nano) => Some(unix_nano),
            Bound::AfterStart(nanos) => begins_unix_nano.map(|begins| begins.saturating_add(nanos)),
        };
        Window { start_unix_nano: of(self.start), end_unix_nano: of(self.end) }
    }

    fn are_empty(&self) -> bool {
        match (self.start, self.end) {
            (Some(Bound::At(start)), Some(Bound::At(end)))
            | (Some(Bound::AfterStart(start)), Some(Bound::AfterStart(end))) => end <= start,
            _ => false,
        }
    }
}

/// Parses a time by RFC 3339, with or without an offset from UTC; or a number of seconds since 1970-01-01
/// UTC, with or without a fraction; or, after a `+`, a span of time such as `1m30s` from the recording's
/// beginning.
pub(super) fn parse_bound(text: &str) -> Result<Bound, String> {
    if let Some(span) = text.strip_prefix('+') {
        let span = humantime::parse_duration(span).ok();
        let nanos = span.and_then(|span| i64::try_from(span.as_nanos()).ok());
        return nanos.map(Bound::AfterStart).ok_or_else(no_time);
    }
    let nanos = match text.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 && seconds.is_finite() => Some((seconds * NANOS_PER_SECOND) as i64),
        Ok(_) => None,
        // A time without an offset is in UTC.
        Err(_) => rfc3339::parse(text, |_| Some(0)),
    };
    nanos.map(Bound::At).ok_or_else(no_time)
}

fn no_time() -> String {
    "a time must be like 2026-01-31T12:00:00Z or 2026-01-31T14:00:00+02:00, or seconds since 1970, or like \
     +1m30s from the recording's beginning"
        .to_owned()
}

/// Parses the length of an interval, such as `10s`.
pub(super) fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if interval.is_zero() { Err("an interval must be longer than zero".to_owned()) } else { Ok(interval) }
}

/// The window of each input. A single start or end applies to all inputs; otherwise there is one for each
/// input in turn.
pub(super) fn of_inputs(starts: &[Bound], ends: &[Bound], inputs: usize) -> anyhow::Result<Vec<Bounds>> {
    for (option, times) in [("--start", starts), ("--end", ends)] {
        if times.len() > 1 && times.len() != inputs {
            bail!("{} {option} for {inputs} recordings: give one for all, or one for each", times.len());
        }
    }
    let at = |times: &[Bound], input: usize| times.get(if times.len() == 1 { 0 } else { input }).copied();
    let windows: Vec<_> =
        (0..inputs).map(|input| Bounds { start: at(starts, input), end: at(ends, input) }).collect();
    if windows.iter().any(Bounds::are_empty) {
        bail!("--end must be after --start");
    }
    Ok(windows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_or_seconds() {
        assert_eq!(parse_bound("1970-01-01T00:00:02Z"), Ok(Bound::At(2_000_000_000)));
        assert_eq!(parse_bound("1970-01-01 00:00:02"), Ok(Bound::At(2_000_000_000)));
        assert_eq!(parse_bound("2.5"), Ok(Bound::At(2_500_000_000)));
        for text in ["", "yesterday", "-1", "NaN", "inf"] {
            assert!(parse_bound(text).is_err(), "{text}");
        }
    }

    /// Regression: times with an offset from UTC, as `date --iso-8601=seconds` gives them, were refused.
    #[test]
    fn times_may_have_an_offset_from_utc() {
        for (text, seconds) in [
            ("1970-01-02T00:00:00+02:00", 79_200),
            ("1970-01-02T00:00:00-03:30", 99_000),
            ("1970-01-02T00:00:00-0330", 99_000),
            ("1970-01-02 00:00:00+02", 79_200),
            ("1970-01-02T00:00:00.000+00:00", 86_400),
        ] {
            assert_eq!(parse_bound(text), Ok(Bound::At(seconds * 1_000_000_000)), "{text}");
        }
        for text in [
            "1970-01-02T00:00:00+",
            "1970-01-02T00:00:00+2:00",
            "1970-01-02T00:00:00+02:60",
            "1970-01-02T00:00:00+24:00",
            "1970-01-02T00:00:00+02:00Z",
            "1970-01-01T00:00:00+02:00 ",
        ] {
            assert!(parse_bound(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_may_be_spans_from_the_recordings_beginning() {
        assert_eq!(parse_bound("+1m30s"), Ok(Bound::AfterStart(90_000_000_000)));
        assert!(parse_bound("+").is_err() && parse_bound("+30").is_err() && parse_bound("+-1s").is_err());
        let bounds = Bounds { start: Some(Bound::AfterStart(5)), end: Some(Bound::At(200)) };
        let window = |start, end| Window { start_unix_nano: start, end_unix_nano: end };
        assert_eq!(bounds.window(Some(100)), window(Some(105), Some(200)));
        assert_eq!(bounds.window(None), window(None, Some(200)));
    }

    #[test]
    fn one_bound_applies_to_all_inputs_or_each_input_has_its_own() {
        let [one, two, five] = [1, 2, 5].map(Bound::At);
        let window = |start, end| Bounds { start, end };
        assert_eq!(of_inputs(&[], &[], 1).unwrap(), [Bounds::default()]);
        assert_eq!(of_inputs(&[one], &[], 2).unwrap(), [window(Some(one), None); 2]);
        let each = [window(Some(one), Some(five)), window(Some(two), Some(five))];
        assert_eq!(of_inputs(&[one, two], &[five], 2).unwrap(), each);
        assert!(of_inputs(&[one, two], &[], 3).is_err());
        assert!(of_inputs(&[five], &[five], 1).is_err());
        assert!(of_inputs(&[Bound::AfterStart(5)], &[Bound::AfterStart(5)], 1).is_err());
    }
}
