//! Times and windows of recordings, as the command line gives them.

use std::time::{Duration, UNIX_EPOCH};

use anyhow::bail;

use crate::convert::Window;

const NANOS_PER_SECOND: f64 = 1e9;

/// A time in nanoseconds since 1970-01-01 UTC, from RFC 3339 or from seconds, whole or not.
pub(super) fn parse_time(text: &str) -> Result<i64, String> {
    let nanos = match text.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 && seconds.is_finite() => Some((seconds * NANOS_PER_SECOND) as i64),
        Ok(_) => None,
        Err(_) => humantime::parse_rfc3339_weak(text)
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
            .and_then(|since| i64::try_from(since.as_nanos()).ok()),
    };
    nanos.ok_or_else(|| "a time is like 2026-01-31T12:00:00Z, or seconds since 1970".to_owned())
}

/// How long an interval is, such as `10s`.
pub(super) fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if interval.is_zero() { Err("an interval is longer than nothing".to_owned()) } else { Ok(interval) }
}

/// The window of each input: one start or end is for all, as many as there are inputs are for each in turn.
pub(super) fn of_inputs(starts: &[i64], ends: &[i64], inputs: usize) -> anyhow::Result<Vec<Window>> {
    for (option, times) in [("--start", starts), ("--end", ends)] {
        if times.len() > 1 && times.len() != inputs {
            bail!("{} {option} for {inputs} recordings: give one for all, or one for each", times.len());
        }
    }
    let at = |times: &[i64], input: usize| times.get(if times.len() == 1 { 0 } else { input }).copied();
    let windows: Vec<_> = (0..inputs)
        .map(|input| Window { start_unix_nano: at(starts, input), end_unix_nano: at(ends, input) })
        .collect();
    let is_empty = |window: &Window| {
        window.start_unix_nano.zip(window.end_unix_nano).is_some_and(|(start, end)| end <= start)
    };
    if windows.iter().any(is_empty) {
        bail!("--end is not after --start");
    }
    Ok(windows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_or_seconds() {
        assert_eq!(parse_time("1970-01-01T00:00:02Z"), Ok(2_000_000_000));
        assert_eq!(parse_time("1970-01-01 00:00:02"), Ok(2_000_000_000));
        assert_eq!(parse_time("2.5"), Ok(2_500_000_000));
        for text in ["", "yesterday", "-1", "NaN", "inf"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_bound_is_for_all_inputs_or_each_has_its_own() {
        let window = |start, end| Window { start_unix_nano: start, end_unix_nano: end };
        assert_eq!(of_inputs(&[], &[], 1).unwrap(), [Window::default()]);
        assert_eq!(of_inputs(&[1], &[], 2).unwrap(), [window(Some(1), None); 2]);
        let each = [window(Some(1), Some(5)), window(Some(2), Some(5))];
        assert_eq!(of_inputs(&[1, 2], &[5], 2).unwrap(), each);
        assert!(of_inputs(&[1, 2], &[], 3).is_err());
        assert!(of_inputs(&[5], &[5], 1).is_err());
    }
}
