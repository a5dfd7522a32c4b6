//! The settings of debuginfod's clients, from the environment (debuginfod-find's manual, "ENVIRONMENT
//! VARIABLES").

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::ClientError;

/// The most bytes of a file that no setting bounds: far above the largest debug files.
const MOST_BYTES: u64 = 64 << 30;

/// The settings of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The servers: `DEBUGINFOD_URLS`.
    pub urls: Vec<String>,
    /// The time in which an answer must begin, and in which each 100 KB of it must come:
    /// `DEBUGINFOD_TIMEOUT`.
    pub timeout: Duration,
    /// The most bytes of a file: `DEBUGINFOD_MAXSIZE`.
    pub max_size: u64,
    /// The most time for a file: `DEBUGINFOD_MAXTIME`.
    pub max_time: Option<Duration>,
    /// The number of times that a broken connection is tried again: `DEBUGINFOD_RETRY_LIMIT`.
    pub retries: u32,
    /// The file with headers of requests: `DEBUGINFOD_HEADERS_FILE`.
    pub headers_file: Option<PathBuf>,
    /// Whether downloads are shown while they go on: `DEBUGINFOD_PROGRESS`.
    pub progress: bool,
    /// Whether answers of servers are shown: `DEBUGINFOD_VERBOSE`.
    pub verbose: bool,
    /// The folder of downloaded files.
    pub cache: Option<PathBuf>,
}

impl Settings {
    /// Settings for these servers and this cache, with elfutils' other values.
    pub fn of(urls: Vec<String>, cache: Option<PathBuf>) -> Self {
        Self {
            urls,
            timeout: Duration::from_secs(90),
            max_size: MOST_BYTES,
            max_time: None,
            retries: 2,
            headers_file: None,
            progress: false,
            verbose: false,
            cache,
        }
    }

    /// The settings of this process's environment.
    pub fn of_environment() -> Self {
        Self::of_variables(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
    }

    /// The settings that variables give. A value that is no number is as if it were not set.
    pub fn of_variables(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let text = |name| variable(name).and_then(|value| value.into_string().ok());
        let number = |name| text(name).and_then(|value| value.trim().parse::<u64>().ok());
        let path = |name: &str| variable(name).map(PathBuf::from);
        let urls = text("DEBUGINFOD_URLS").unwrap_or_default();
        // `ima:enforcing` and `ima:ignore` are no servers, but say how signatures of the next ones are used.
        let urls = urls.split_ascii_whitespace().filter(|url| !url.starts_with("ima:")).map(str::to_owned);
        let home = || path("HOME");
        let usual = || {
            let old = home().map(|home| home.join(".debuginfod_client_cache")).filter(|old| old.is_dir());
            let cache = || path("XDG_CACHE_HOME").or_else(|| Some(home()?.join(".cache")));
            old.or_else(|| Some(cache()?.join("debuginfod_client")))
        };
        let default = Self::of(urls.collect(), path("DEBUGINFOD_CACHE_PATH").or_else(usual));
        let seconds = |name| number(name).filter(|&seconds| seconds > 0).map(Duration::from_secs);
        Self {
            timeout: number("DEBUGINFOD_TIMEOUT").map_or(default.timeout, Duration::from_secs),
            max_size: number("DEBUGINFOD_MAXSIZE").filter(|&size| size > 0).unwrap_or(MOST_BYTES),
            max_time: seconds("DEBUGINFOD_MAXTIME"),
            retries: number("DEBUGINFOD_RETRY_LIMIT").map_or(default.retries, |limit| limit.min(10) as u32),
            headers_file: path("DEBUGINFOD_HEADERS_FILE"),
            progress: variable("DEBUGINFOD_PROGRESS").is_some(),
            verbose: variable("DEBUGINFOD_VERBOSE").is_some(),
            ..default
        }
    }

    /// The headers of the file of headers: one `NAME: VALUE` a line.
    pub(super) fn headers(&self) -> Result<Vec<(String, String)>, ClientError> {
        let Some(path) = &self.headers_file else { return Ok(Vec::new()) };
        let failed = |error| ClientError::Headers { path: path.clone(), error };
        Ok(parse_headers(&read_bounded(path).map_err(failed)?))
    }
}

fn read_bounded(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    fs::File::open(path)?.take(1 << 20).read_to_string(&mut text)?;
    Ok(text)
}

/// Lines that are no header are ignored, as elfutils does.
fn parse_headers(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let trimmed = lines.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    trimmed.filter(|(name, value)| !name.is_empty() && !value.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Settings {
        let find = |name: &str| variables.iter().find(|(found, _)| *found == name).map(|(_, value)| *value);
        Settings::of_variables(|name| find(name).map(OsString::from))
    }

    #[test]
    fn servers_are_words_of_the_variable_and_signatures_are_none() {
        let found = settings(&[("DEBUGINFOD_URLS", " http://a  ima:enforcing https://b/x/ ima:ignore ")]);
        assert_eq!(found.urls, ["http://a", "https://b/x/"]);
        assert!(settings(&[]).urls.is_empty());
    }

    #[test]
    fn numbers_are_those_of_the_variables_or_elfutils_own() {
        let found = settings(&[
            ("DEBUGINFOD_TIMEOUT", "5"),
            ("DEBUGINFOD_MAXSIZE", "1000"),
            ("DEBUGINFOD_MAXTIME", "7"),
            ("DEBUGINFOD_RETRY_LIMIT", "0"),
        ]);
        let of = (found.timeout.as_secs(), found.max_size, found.max_time, found.retries);
        assert_eq!(of, (5, 1000, Some(Duration::from_secs(7)), 0));
        let found = settings(&[("DEBUGINFOD_TIMEOUT", "x"), ("DEBUGINFOD_MAXTIME", "0")]);
        assert_eq!((found.timeout.as_secs(), found.max_time, found.retries), (90, None, 2));
    }

    #[test]
    fn the_cache_is_elfutils_own() {
        let cache = |variables: &[_]| settings(variables).cache.map(|path| path.display().to_string());
        let (home, xdg, own) =
            (("HOME", "/no/home"), ("XDG_CACHE_HOME", "/x"), ("DEBUGINFOD_CACHE_PATH", "/own"));
        assert_eq!(cache(&[home]).as_deref(), Some("/no/home/.cache/debuginfod_client"));
        assert_eq!(cache(&[home, xdg]).as_deref(), Some("/x/debuginfod_client"));
        assert_eq!(cache(&[home, xdg, own]).as_deref(), Some("/own"));
        assert_eq!(cache(&[]), None);
    }

    #[test]
    fn headers_are_lines_of_a_name_and_a_value() {
        let found = parse_headers("A: b\n\nno header\nAuthorization: Basic eDp5: z\n: v\nEmpty:\n");
        let expected = [("A", "b"), ("Authorization", "Basic eDp5: z")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
