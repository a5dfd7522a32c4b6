//! Times on the command line, absolute or relative to the end of the profiles.

use std::time::Duration;

use anyhow::bail;

use crate::cli::rfc3339;

/// A time that bounds the wanted samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum TimeBound {
    /// Nanoseconds since 1970.
    At(u64),
    /// Nanoseconds before the end of the last profile.
    BeforeEnd(u64),
}

impl TimeBound {
    /// Nanoseconds since 1970. `end_ns` is the end of the last profile.
    pub(in crate::cli) fn unix_ns(self, end_ns: Option<u64>) -> anyhow::Result<u64> {
        match (self, end_ns) {
            (Self::At(unix_ns), _) => Ok(unix_ns),
            (Self::BeforeEnd(before_ns), Some(end_ns)) => Ok(end_ns.saturating_sub(before_ns)),
            (Self::BeforeEnd(_), None) => bail!("the profiles have no times: name no time before their end"),
        }
    }
}

/// Parses a time: `2026-01-31T12:00:00Z`, with an offset such as `+02:00`, or without one in local time; or
/// `-90s`, a time before the end of the profiles.
pub(in crate::cli) fn parse(text: &str) -> Result<TimeBound, String> {
    let failed = || {
        "a time is 2026-01-31T12:00:00Z, 2026-01-31T14:00:00+02:00, 2026-01-31T12:00:00 in local time, or \
         -5m for five minutes before the end"
            .to_owned()
    };
    if let Some(before) = text.strip_prefix('-') {
        let before: Duration = humantime::parse_duration(before).map_err(|_| failed())?;
        return Ok(TimeBound::BeforeEnd(u64::try_from(before.as_nanos()).unwrap_or(u64::MAX)));
    }
    let unix_ns = rfc3339::parse(text, local_offset_seconds);
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
    fn times_are_absolute_or_before_the_end() {
        let noon = 1_769_860_800_000_000_000;
        for text in ["2026-01-31T12:00:00Z", "2026-01-31T14:00:00+02:00", "2026-01-31T08:30:00-0330"] {
            assert_eq!(parse(text), Ok(TimeBound::At(noon)), "{text}");
        }
        assert_eq!(parse("2026-01-31T12:00:00.25Z"), Ok(TimeBound::At(noon + 250_000_000)));
        assert_eq!(parse("-90s"), Ok(TimeBound::BeforeEnd(90_000_000_000)));
        assert_eq!(parse("-1h 5m"), Ok(TimeBound::BeforeEnd(3_900_000_000_000)));
        for wrong in ["", "noon", "12:00", "2026-01-31T12:00:00+2", "-", "-x", "2026-13-31T12:00:00Z"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(TimeBound::BeforeEnd(5).unix_ns(Some(7)).unwrap(), 2);
        assert!(TimeBound::BeforeEnd(5).unix_ns(None).is_err());
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
