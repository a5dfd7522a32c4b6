//! Spans of time on the command line.

use std::time::Duration;

/// Parses a span such as `1m30s` or `500ms`. A bare number has seconds, as in async-profiler's command.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let is_bare = text.bytes().any(|digit| digit.is_ascii_digit())
        && text.bytes().all(|digit| digit.is_ascii_digit() || digit == b'.');
    if is_bare {
        let seconds = text.parse::<f64>().map_err(|error| error.to_string())?;
        return Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string());
    }
    humantime::parse_duration(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_numbers_are_seconds() {
        for (text, ms) in [("30", 30_000), ("0.5", 500), ("1m 30s", 90_000), ("200ms", 200), ("0", 0)] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", ".", "1.2.3", "-1", "x", "5 parsecs", "99999999999999999999999"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
