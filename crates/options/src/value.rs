//! Parsers of single values. An error describes valid values, for a message "KEY=VALUE: …".

use std::path::PathBuf;
use std::time::Duration;

use otlpprof_model::{PercentError, percent_decoded};
use otlpprof_sampling::config::Config;

type Read<T> = Result<T, String>;

/// Parses true/false, t/f, yes/no, y/n, on/off or 1/0, in any case.
pub(super) fn boolean(text: &str) -> Read<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "on" | "1" => Ok(true),
        "false" | "f" | "no" | "n" | "off" | "0" => Ok(false),
        _ => Err("must be true or false (or t/f, yes/no, y/n, on/off, 1/0)".into()),
    }
}

/// Parses one of the names of a table.
pub(super) fn choice<T: Copy>(text: &str, choices: &[(&str, T)]) -> Read<T> {
    choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        match names.as_slice() {
            [only] => format!("must be {only}"),
            _ => format!("must be one of {}", names.join(", ")),
        }
    })
}

const DURATION_UNITS: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Writes a duration in the form in which it can be given: the standard library's form may contain µ, which
/// no option accepts.
fn written(duration: Duration) -> String {
    let is_whole = |(_, factor): &&(&str, u64)| duration.as_nanos().is_multiple_of(u128::from(*factor));
    let (unit, factor) = DURATION_UNITS.iter().rfind(is_whole).unwrap_or(&DURATION_UNITS[0]);
    format!("{}{unit}", duration.as_nanos() / u128::from(*factor))
}

/// Parses a whole number followed by ns, us, ms, s, m or h. A number without a unit is in nanoseconds, as in
/// async-profiler. The bounds are inclusive.
pub(super) fn duration(text: &str, least: Duration, most: Duration) -> Read<Duration> {
    let (number, unit) = number_and_unit(text);
    let factor = if unit.is_empty() { Some(1) } else { find(&DURATION_UNITS, unit) };
    let duration =
        factor.zip(number).and_then(|(factor, number)| number.checked_mul(factor)).map(Duration::from_nanos);
    let bounds = || format!("must be from {} to {}", written(least), written(most));
    match duration {
        Some(duration) if (least..=most).contains(&duration) => Ok(duration),
        Some(_) if unit.is_empty() => {
            Err(format!("a number without a unit is nanoseconds; {}, like {}", bounds(), written(least)))
        }
        Some(_) => Err(bounds()),
        None => Err("must be a duration: a whole number and one of ns, us, ms, s, m, h, like 10ms".into()),
    }
}

/// Parses a whole number of bytes, or one with k, m or g for 2^10, 2^20, 2^30.
pub(super) fn size(text: &str, least: usize, most: usize) -> Read<usize> {
    const UNITS: [(&str, u64); 4] = [("", 1), ("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30)];
    let (number, unit) = number_and_unit(text);
    let factor = find(&UNITS, &unit.to_ascii_lowercase());
    let bytes = factor.zip(number).and_then(|(factor, number)| number.checked_mul(factor));
    match bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
        Some(bytes) if (least..=most).contains(&bytes) => Ok(bytes),
        Some(_) => Err(format!("must be from {least} to {most} bytes")),
        None => Err("must be a size: a whole number of bytes, or one with k, m or g, like 16m".into()),
    }
}

/// Parses a whole number. The bounds are inclusive.
pub(super) fn integer(text: &str, least: usize, most: usize) -> Read<usize> {
    let number = digits(text).and_then(|number| usize::try_from(number).ok());
    number
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| format!("must be a whole number from {least} to {most}"))
}

/// Parses a signal that an agent may use: a number, or a name with or without SIG.
pub(super) fn signal(text: &str) -> Read<i32> {
    const NAMES: &[(&str, i32)] = &Config::NAMED_SIGNALS;
    let upper = text.to_ascii_uppercase();
    let named = NAMES.iter().find(|(name, _)| *name == upper.strip_prefix("SIG").unwrap_or(&upper));
    let numbered = digits(text).and_then(|number| i32::try_from(number).ok());
    let allowed = numbered.filter(|number| Config::allows_signal(*number));
    named.map(|(_, number)| *number).or(allowed).ok_or_else(|| {
        let names: Vec<_> = NAMES.iter().map(|(name, _)| format!("SIG{name}")).collect();
        format!(
            "must be a signal that neither the JVM nor libc needs: {}, or a real-time signal's number \
             ({} to {})",
            names.join(", "),
            libc::SIGRTMIN(),
            libc::SIGRTMAX()
        )
    })
}

/// Parses the absolute path of a folder, or `no`.
pub(super) fn folder_or_no(text: &str) -> Read<Option<PathBuf>> {
    let folder = PathBuf::from(text);
    match text {
        "no" => Ok(None),
        _ if folder.is_absolute() => Ok(Some(folder)),
        _ => Err("must be an absolute folder, or no".into()),
    }
}

/// Accepts any text that is not empty.
pub(super) fn text(text: &str) -> Read<String> {
    if text.is_empty() { Err("must not be empty".into()) } else { Ok(text.to_owned()) }
}

/// Parses `KEY=VALUE` pairs separated by `separator`, with %XX for characters that would be misread. Blanks
/// around keys and values are not part of them (W3C Baggage, "OWS"). Of equal keys the last one counts.
/// Errors repeat no part of the text, which may be a secret.
pub(super) fn pairs(text: &str, separator: char) -> Read<Vec<(String, String)>> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for item in text.split(separator).map(str::trim).filter(|item| !item.is_empty()) {
        let (key, value) = item.split_once('=').ok_or("each item must be KEY=VALUE")?;
        let key = percent_decode(key.trim())?;
        let value = percent_decode(value.trim())?;
        if key.is_empty() {
            return Err("an item has an empty key".into());
        }
        pairs.retain(|(earlier, _)| *earlier != key);
        pairs.push((key, value));
    }
    Ok(pairs)
}

/// Parses different names that pass `check`, separated by `separator`, with %XX as in [`pairs`].
pub(super) fn names(
    text: &str,
    separator: char,
    most: usize,
    check: fn(&str) -> Read<()>,
) -> Read<Vec<String>> {
    let mut names = Vec::new();
    for item in text.split(separator).map(str::trim).filter(|item| !item.is_empty()) {
        let name = percent_decode(item)?;
        check(&name)?;
        if names.contains(&name) {
            return Err(format!("'{name}' is given twice"));
        }
        names.push(name);
    }
    if names.len() > most {
        return Err(format!("{} names, more than {most}", names.len()));
    }
    Ok(names)
}

fn percent_decode(text: &str) -> Read<String> {
    percent_decoded(text).map_err(|error| {
        let reason = match error {
            PercentError::NoDigits => "a % must be followed by two hexadecimal digits; write %25 for %",
            PercentError::NoText => "must be UTF-8 once its %XX are decoded",
        };
        reason.into()
    })
}

fn number_and_unit(text: &str) -> (Option<u64>, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (digits(number), unit)
}

/// Parses digits, without sign or blanks.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn find(units: &[(&str, u64)], unit: &str) -> Option<u64> {
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LIMIT: (Duration, Duration) = (Duration::ZERO, Duration::MAX);

    fn any_duration(text: &str) -> Option<Duration> {
        duration(text, NO_LIMIT.0, NO_LIMIT.1).ok()
    }

    #[test]
    fn booleans_have_the_usual_spellings_and_no_others() {
        for yes in ["true", "t", "yes", "y", "on", "1", "TRUE", "T", "Yes"] {
            assert_eq!(boolean(yes), Ok(true), "{yes}");
        }
        for no in ["false", "f", "no", "n", "off", "0", "FALSE", "F", "No"] {
            assert_eq!(boolean(no), Ok(false), "{no}");
        }
        for bad in ["", "invalid", "tru", "2", "01", " true", "tr", "ff", "enabled"] {
            assert!(boolean(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_have_units_and_default_to_nanoseconds() {
        for (text, ns) in [
            ("10ms", 10_000_000),
            ("500us", 500_000),
            ("1s", 1_000_000_000),
            ("2m", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("7ns", 7),
            ("100000", 100_000),
            ("0", 0),
        ] {
            assert_eq!(any_duration(text), Some(Duration::from_nanos(ns)), "{text}");
        }
        for bad in [
            "",
            "ms",
            "1.5s",
            "-1s",
            "+1s",
            "1 s",
            "1S",
            "1d",
            "s1",
            "18446744073709551616",
            "18446744073709551615h",
        ] {
            assert_eq!(any_duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_duration_out_of_bounds_says_the_bounds() {
        let bounds = (Duration::from_millis(100), Duration::from_secs(3600));
        assert_eq!(
            duration("10", bounds.0, bounds.1).unwrap_err().split(';').next(),
            Some("a number without a unit is nanoseconds")
        );
        assert_eq!(duration("2h", bounds.0, bounds.1), Err("must be from 100ms to 1h".into()));
        assert!(duration("100ms", bounds.0, bounds.1).is_ok());
        assert!(duration("1h", bounds.0, bounds.1).is_ok());
    }

    #[test]
    fn bounds_are_written_as_they_can_be_given() {
        for text in ["7ns", "50us", "100ms", "1s", "90s", "2m", "1h"] {
            assert_eq!(any_duration(text).map(written).as_deref(), Some(text));
        }
    }

    #[test]
    fn sizes_are_powers_of_two() {
        for (text, bytes) in
            [("0", 0), ("10", 10), ("4k", 4096), ("16m", 16 << 20), ("16M", 16 << 20), ("1g", 1 << 30)]
        {
            assert_eq!(size(text, 0, usize::MAX), Ok(bytes), "{text}");
        }
        for bad in ["", "m", "1kb", "-1", "1.5m", "17179869184g", "18446744073709551616"] {
            assert!(size(bad, 0, usize::MAX).is_err(), "{bad}");
        }
        assert_eq!(size("1k", 0, 1023), Err("must be from 0 to 1023 bytes".into()));
    }

    #[test]
    fn integers_stay_within_bounds() {
        assert_eq!(integer("2048", 1, 2048), Ok(2048));
        for bad in ["", "0", "2049", "-1", "+1", "1e3", "99999999999999999999"] {
            assert_eq!(integer(bad, 1, 2048), Err("must be a whole number from 1 to 2048".into()), "{bad}");
        }
    }

    #[test]
    fn signals_that_the_jvm_needs_are_refused() {
        for (text, number) in [("SIGPROF", 27), ("prof", 27), ("27", 27), ("SigVtAlrm", 26), ("64", 64)] {
            assert_eq!(signal(text), Ok(number), "{text}");
        }
        // 34 with glibc, 35 with musl.
        let first = libc::SIGRTMIN();
        assert_eq!(signal(&first.to_string()), Ok(first));
        for number in -1..=70 {
            assert_eq!(signal(&number.to_string()).is_ok(), Config::allows_signal(number), "{number}");
        }
        for (name, number) in Config::NAMED_SIGNALS {
            assert_eq!(signal(name), Ok(number));
            assert_eq!(signal(&format!("SIG{name}")), Ok(number));
        }
        // SIGSEGV is HotSpot's implicit null check, SIGUSR2 its suspend signal, SIGQUIT its thread dump.
        for bad in [
            "", "SIG", "SIGSEGV", "11", "12", "SIGUSR2", "3", "9", "0", "-1", "32", "33", "65", "WINCH",
            "SIGXCPU",
        ] {
            assert!(signal(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn pairs_are_split_then_decoded() {
        let read = |text| pairs(text, '+').unwrap();
        assert_eq!(read("a=1+b=2"), [("a".into(), "1".into()), ("b".into(), "2".into())]);
        assert_eq!(read("k=a%2Bb%2C%25=c"), [("k".into(), "a+b,%=c".into())]);
        assert_eq!(read("k=%C3%A9"), [("k".into(), "é".into())]);
        assert_eq!(read(" a = 1 + "), [("a".into(), "1".into())]);
        assert_eq!(read("a=1+a=2"), [("a".into(), "2".into())], "the last of equal keys");
        assert_eq!(read("a="), [("a".into(), String::new())]);
        assert_eq!(read(""), []);
        for bad in ["a", "=1", "a=%", "a=%2", "a=%zz", "a=%ff", "a=%+1"] {
            assert!(pairs(bad, '+').is_err(), "{bad}");
        }
    }
}
