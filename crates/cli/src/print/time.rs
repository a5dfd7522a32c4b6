//! Times and durations as text.

use std::time::{Duration, UNIX_EPOCH};

/// Formats a time in UTC by RFC 3339.
pub(crate) fn utc(unix_nano: u64) -> String {
    humantime::format_rfc3339_nanos(UNIX_EPOCH + Duration::from_nanos(unix_nano)).to_string()
}

/// Formats a time in UTC by RFC 3339, to the second.
pub(crate) fn utc_seconds(unix_nano: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(unix_nano)).to_string()
}

/// A duration in seconds.
pub(crate) fn seconds(nanos: u64) -> String {
    let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(utc(951_782_400_000_000_001), "2000-02-29T00:00:00.000000001Z");
        assert_eq!(utc(1_700_000_000_000_000_000), "2023-11-14T22:13:20.000000000Z");
        assert_eq!(utc(4_107_542_399_999_999_999), "2100-02-28T23:59:59.999999999Z");
        assert_eq!(utc(4_107_542_400_000_000_000), "2100-03-01T00:00:00.000000000Z");
        assert_eq!(utc(u64::MAX), "2554-07-21T23:34:33.709551615Z");
    }

    #[test]
    fn durations_lose_nothing_but_zeros() {
        assert_eq!(seconds(0), "0 s");
        assert_eq!(seconds(10_000_000_000), "10 s");
        assert_eq!(seconds(1_050_000_001), "1.050000001 s");
    }
}
