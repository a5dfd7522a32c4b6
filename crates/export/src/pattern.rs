//! Names of output files: a path in which `%p`, `%t` and `%h` stand for process, time and host.

use std::path::PathBuf;
use std::time::SystemTime;

/// A `%` that is followed by no known character.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{pattern}: %{unknown} is unknown; %p (process id), %t (time), %h (host name) and %% (a %) are known"
)]
pub struct PatternError {
    /// The whole pattern.
    pub pattern: String,
    /// The character after the `%`. Empty if the `%` ends the pattern.
    pub unknown: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Process,
    Time,
    Host,
}

/// A parsed file name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    parts: Vec<Part>,
}

impl PathPattern {
    /// Parses a file name: `%p` is the process id, `%t` the time as `YYYYMMDD-HHMMSS` in UTC, `%h` the host's
    /// name, `%%` a percent sign.
    ///
    /// # Errors
    /// A `%` is followed by any other character, or by none.
    pub fn parse(pattern: &str) -> Result<Self, PatternError> {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = pattern.chars();
        while let Some(character) = rest.next() {
            if character != '%' {
                text.push(character);
                continue;
            }
            let part = match rest.next() {
                Some('%') => {
                    text.push('%');
                    continue;
                }
                Some('p') => Part::Process,
                Some('t') => Part::Time,
                Some('h') => Part::Host,
                other => {
                    let unknown = other.map(String::from).unwrap_or_default();
                    return Err(PatternError { pattern: pattern.to_owned(), unknown });
                }
            };
            parts.push(Part::Text(std::mem::take(&mut text)));
            parts.push(part);
        }
        parts.push(Part::Text(text));
        Ok(Self { parts })
    }

    /// Whether the name contains the time, so that every message has its own file.
    pub fn has_time(&self) -> bool {
        self.parts.contains(&Part::Time)
    }

    /// The path for people: only the time is not yet expanded.
    pub fn shown(&self) -> String {
        let shown = |part: &Part| match part {
            Part::Time => "%t".to_owned(),
            other => expand(other, SystemTime::UNIX_EPOCH, 0),
        };
        self.parts.iter().map(shown).collect()
    }

    /// The path at the time `now`. `collision` is 0 for the first choice. A higher number is appended to the
    /// time, for a path whose earlier choices already exist.
    pub fn expand(&self, now: SystemTime, collision: u32) -> PathBuf {
        let expanded: String = self.parts.iter().map(|part| expand(part, now, collision)).collect();
        PathBuf::from(expanded)
    }
}

fn expand(part: &Part, now: SystemTime, collision: u32) -> String {
    match part {
        Part::Text(text) => text.clone(),
        Part::Process => std::process::id().to_string(),
        Part::Time if collision == 0 => compact_utc(now),
        Part::Time => format!("{}-{}", compact_utc(now), collision + 1),
        Part::Host => host_name(),
    }
}

/// The host's name, as one component of a path.
fn host_name() -> String {
    let name = nix::unistd::gethostname().unwrap_or_default();
    match name.to_string_lossy().replace('/', "_") {
        name if name.is_empty() => "localhost".to_owned(),
        name => name,
    }
}

/// `YYYYMMDD-HHMMSS` in UTC: sorts by time and is a file name everywhere. Times before 1970 count as 1970.
fn compact_utc(time: SystemTime) -> String {
    // The text has the form 2000-02-29T00:00:00Z.
    let text = humantime::format_rfc3339_seconds(time.max(SystemTime::UNIX_EPOCH)).to_string();
    let digits = |c: char| (c == 'T').then_some('-').or_else(|| c.is_ascii_digit().then_some(c));
    text.chars().filter_map(digits).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn expanded(pattern: &str, collision: u32) -> String {
        let now = UNIX_EPOCH + Duration::from_secs(951_782_400);
        PathPattern::parse(pattern).unwrap().expand(now, collision).into_os_string().into_string().unwrap()
    }

    #[test]
    fn every_sign_is_expanded() {
        let (pid, host) = (std::process::id(), host_name());
        assert_eq!(expanded("/a/%%p%p-%h%t.otlp", 0), format!("/a/%p{pid}-{host}20000229-000000.otlp"));
        assert_eq!(expanded("%t", 1), "20000229-000000-2");
        let shown = PathPattern::parse("/a/%%-%p-%h-%t.otlp").unwrap().shown();
        assert_eq!(shown, format!("/a/%-{pid}-{host}-%t.otlp"));
        assert_eq!(expanded("100%%", 0), "100%");
        assert_eq!(expanded("profilé", 3), "profilé");
        assert!(!host.is_empty() && !host.contains('/'));
    }

    #[test]
    fn only_percent_t_is_a_time() {
        for (pattern, time) in [("%t", true), ("a%tb", true), ("%%t", false), ("%p%h", false), ("t", false)] {
            assert_eq!(PathPattern::parse(pattern).unwrap().has_time(), time, "{pattern}");
        }
    }

    #[test]
    fn unknown_signs_are_named() {
        for (pattern, unknown) in [("a%x", "x"), ("a%", ""), ("%%%é", "é"), ("%P", "P")] {
            let error = PathPattern::parse(pattern).unwrap_err();
            assert_eq!(error.unknown, unknown);
            assert!(error.to_string().starts_with(&format!("{pattern}: %{unknown} is unknown")));
        }
    }
}
