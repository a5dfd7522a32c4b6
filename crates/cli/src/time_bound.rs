//! Times on the command line: absolute, or relative to the begin or the end of the profiles.

use anyhow::bail;

use super::{duration, rfc3339};

const NANOS_PER_SECOND: f64 = 1e9;

/// A time that bounds the wanted samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeBound {
    /// Nanoseconds since 1970.
    At(u64),
    /// Nanoseconds after the begin of the first profile, or of the recording.
    AfterBegin(u64),
    /// Nanoseconds before the end of the last profile.
    BeforeEnd(u64),
}

impl TimeBound {
    /// Nanoseconds since 1970. `times_ns` has the begin of the first profile and the end of the last one.
    pub(super) fn unix_ns(self, times_ns: Option<(u64, u64)>) -> anyhow::Result<u64> {
        match (self, times_ns) {
            (Self::At(unix_ns), _) => Ok(unix_ns),
            (Self::AfterBegin(after_ns), Some((begin_ns, _))) => Ok(begin_ns.saturating_add(after_ns)),
            (Self::BeforeEnd(before_ns), Some((_, end_ns))) => Ok(end_ns.saturating_sub(before_ns)),
            (Self::AfterBegin(_) | Self::BeforeEnd(_), None) => {
                bail!("the profiles have no times: name no time relative to their begin or end")
            }
        }
    }
}

/// Parses a time: `2026-01-31T12:00:00Z`, with an offset such as `+02:00`, or without one in local time;
/// seconds since 1970; `+90s`, a time after the begin of the profiles; or `-90s`, a time before their end.
pub(super) fn parse(text: &str) -> Result<TimeBound, String> {
    let failed = || {
        "a time is 2026-01-31T12:00:00Z, 2026-01-31T14:00:00+02:00, 2026-01-31T12:00:00 in local time, \
         seconds since 1970, +5m for five minutes after the begin, or -5m for five minutes before the end"
            .to_owned()
    };
    let span_ns = |text: &str| {
        let span = duration::parse(text).map_err(|_| failed())?;
        u64::try_from(span.as_nanos()).map_err(|_| failed())
    };
    if let Some(after) = text.strip_prefix('+') {
        return span_ns(after).map(TimeBound::AfterBegin);
    }
    if let Some(before) = text.strip_prefix('-') {
        return span_ns(before).map(TimeBound::BeforeEnd);
    }
    let unix_ns = match text.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 && seconds.is_finite() => Some((seconds * NANOS_PER_SECOND) as i64),
        Ok(_) => None,
        Err(_) => rfc3339::parse(text, local_offset_seconds),
    };
    unix_ns.and_then(|unix_ns| u64::try_from(unix_ns).ok()).map(TimeBound::At).ok_or_else(failed)
}

/// The seconds by which local time is ahead of UTC when a local clock shows the time that a UTC clock shows
/// at `civil_seconds` since 1970.
fn local_offset_seconds(civil_seconds: i64) -> Option<i64> {
    // SAFETY: a `tm` is plain data, for which zeros are valid.
    let mut civil: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid.
    let converted = unsafe { libc::gmtime_r(&civil_seconds, &mut civil) };
    if converted.is_null() {
        return None;
    }
    // The C library decides whether summer time applies.
    civil.tm_isdst = -1;
    // SAFETY: the pointer is valid, and `tm` is initialised.
    let unix_seconds = unsafe { libc::mktime(&mut civil) };
    Some(civil_seconds - unix_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_absolute_or_relative_to_the_profiles() {
        let noon = 1_769_860_800_000_000_000;
        for text in ["2026-01-31T12:00:00Z", "2026-01-31T14:00:00+02:00", "2026-01-31T08:30:00-0330"] {
            assert_eq!(parse(text), Ok(TimeBound::At(noon)), "{text}");
        }
        assert_eq!(parse("2026-01-31T12:00:00.25Z"), Ok(TimeBound::At(noon + 250_000_000)));
        assert_eq!(parse("-90s"), Ok(TimeBound::BeforeEnd(90_000_000_000)));
        assert_eq!(parse("-1h 5m"), Ok(TimeBound::BeforeEnd(3_900_000_000_000)));
        assert_eq!(parse("-90"), Ok(TimeBound::BeforeEnd(90_000_000_000)));
        assert_eq!(parse("+1m30s"), Ok(TimeBound::AfterBegin(90_000_000_000)));
        assert_eq!(parse("2.5"), Ok(TimeBound::At(2_500_000_000)));
        for wrong in [
            "",
            "noon",
            "12:00",
            "2026-01-31T12:00:00+2",
            "-",
            "-x",
            "+",
            "+-1s",
            "2026-13-31T12:00:00Z",
            "yesterday",
            "NaN",
            "inf",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(TimeBound::BeforeEnd(5).unix_ns(Some((1, 7))).unwrap(), 2);
        assert_eq!(TimeBound::AfterBegin(5).unix_ns(Some((1, 7))).unwrap(), 6);
        assert!(TimeBound::BeforeEnd(5).unix_ns(None).is_err());
        assert!(TimeBound::AfterBegin(5).unix_ns(None).is_err());
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
            assert_eq!(parse(text), Ok(TimeBound::At(seconds * 1_000_000_000)), "{text}");
        }
        for text in [
            "1970-01-02T00:00:00+",
            "1970-01-02T00:00:00+2:00",
            "1970-01-02T00:00:00+02:60",
            "1970-01-02T00:00:00+24:00",
            "1970-01-02T00:00:00+02:00Z",
            "1970-01-01T00:00:00+02:00 ",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn local_times_are_those_of_the_c_library() {
        let Ok(TimeBound::At(unix_ns)) = parse("2026-07-01T12:00:00") else { panic!("a time") };
        let seconds = i64::try_from(unix_ns / 1_000_000_000).unwrap();
        // SAFETY: a `tm` is plain data, for which zeros are valid.
        let mut local: libc::tm = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are valid.
        unsafe { libc::localtime_r(&seconds, &mut local) };
        let (month, day) = (local.tm_mon + 1, local.tm_mday);
        assert_eq!((month, day, local.tm_hour, local.tm_min), (7, 1, 12, 0));
    }
}
