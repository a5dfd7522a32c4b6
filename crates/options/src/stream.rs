//! The option `stream=INTERVAL`, which follows `answer=SOCKET` and precedes all other options: the command
//! that listens on the socket reads the profiles along.

use std::time::Duration;

use super::agent_string::split_leading;
use super::value;

/// The option with its equals sign.
const OPTION: &str = "stream=";
/// The shortest and the longest time between two messages.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(60 * 60);
/// Commands after which there is nothing to read along.
const WITHOUT_STREAM: [&[u8]; 3] = [b"stop", b"flush", b"help"];

/// Splits the option off the options after `answer=SOCKET`. Returns the time between two messages, and the
/// other options. Without other options the command reads a running session along, and changes nothing: the
/// rest is `status`.
pub fn split_stream(options: &[u8]) -> (Result<Option<Duration>, String>, &[u8]) {
    let Some((text, rest)) = split_leading(options, OPTION) else { return (Ok(None), options) };
    let rest = if rest.is_empty() { b"status" } else { rest };
    let text = String::from_utf8_lossy(text);
    let first = rest.split(|byte| *byte == b',').next().unwrap_or_default();
    let interval = match WITHOUT_STREAM.contains(&first) {
        true => Err(format!("it cannot go with the command {}", String::from_utf8_lossy(first))),
        false => value::duration(&text, SHORTEST, LONGEST),
    };
    (interval.map(Some).map_err(|message| format!("stream={text}: {message}")), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_precedes_all_options() {
        let seconds = |seconds| Ok(Some(Duration::from_secs(seconds)));
        let split = |text: &'static str| {
            let (interval, rest) = split_stream(text.as_bytes());
            (interval, std::str::from_utf8(rest).unwrap())
        };
        assert_eq!(split("stream=1s"), (seconds(1), "status"));
        assert_eq!(split("stream=2s,status"), (seconds(2), "status"));
        assert_eq!(split("stream=1h,cpu=1ms,wall"), (seconds(3600), "cpu=1ms,wall"));
        assert_eq!(split("cpu=1ms,stream=1s"), (Ok(None), "cpu=1ms,stream=1s"));
        assert_eq!(split(""), (Ok(None), ""));
    }

    #[test]
    fn intervals_have_bounds_and_some_commands_no_stream() {
        for (text, message) in [
            ("stream=99ms", "stream=99ms: must be from 100ms to 1h"),
            ("stream=,status", "stream=: must be a duration"),
            ("stream=1s,stop", "stream=1s: it cannot go with the command stop"),
        ] {
            let (interval, _) = split_stream(text.as_bytes());
            assert!(interval.as_ref().is_err_and(|error| error.starts_with(message)), "{interval:?}");
        }
    }
}
