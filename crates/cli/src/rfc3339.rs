//! Times by RFC 3339 on the command line.

use std::time::UNIX_EPOCH;

/// Parses a time such as `2026-01-31T12:00:00.5+02:00`; returns nanoseconds since 1970. `local_offset`
/// returns the seconds ahead of UTC of a time without an offset, by the seconds since 1970 that it would have
/// in UTC.
pub(super) fn parse(text: &str, local_offset: impl FnOnce(i64) -> Option<i64>) -> Option<i64> {
    let (civil, offset_seconds) = split_offset(text)?;
    let since = humantime::parse_rfc3339_weak(civil).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let ahead_seconds = match offset_seconds {
        Some(seconds) => seconds,
        None if civil.ends_with('Z') => 0,
        None => local_offset(i64::try_from(since.as_secs()).ok()?)?,
    };
    i64::try_from(since.as_nanos()).ok()?.checked_sub(ahead_seconds * 1_000_000_000)
}

/// Splits a time into the time without its offset and the offset ahead of UTC in seconds: `+02:00`, `-0330`,
/// `+02`.
fn split_offset(text: &str) -> Option<(&str, Option<i64>)> {
    const DATE_AND_TIME: usize = "2026-01-31T12:00:00".len();
    let Some(sign) = text.get(DATE_AND_TIME..).and_then(|rest| rest.find(['+', '-'])) else {
        return Some((text, None));
    };
    let (civil, offset) = text.split_at(DATE_AND_TIME + sign);
    let digits = offset[1..].replacen(':', "", 1);
    let is_number = [2, 4].contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number: i64 = digits.parse().ok().filter(|_| is_number)?;
    let (hours, minutes) = if digits.len() == 2 { (number, 0) } else { (number / 100, number % 100) };
    let seconds = (hours < 24 && minutes < 60).then_some(hours * 3_600 + minutes * 60)?;
    Some((civil, Some(if offset.starts_with('-') { -seconds } else { seconds })))
}
