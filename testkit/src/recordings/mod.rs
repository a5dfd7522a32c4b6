//! Recordings to test with, and the output of the JDK's own reader for them.

#![allow(dead_code, reason = "not every test binary uses all of it")]

pub(crate) mod converted;
#[path = "../../../tests/jfr/jdk_json.rs"]
pub(crate) mod jdk_json;
#[path = "../../../tests/jfr/jmc_json.rs"]
pub(crate) mod jmc_json;
pub(crate) mod random_frames;
pub(crate) mod synthetic;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

pub(crate) use crate::loud_support::not_tested;
use serde_json::Value;

/// The recordings that scripts/jfr-corpus.sh makes, by name.
///
/// # Panics
/// If the script fails.
pub(crate) fn corpus() -> &'static HashMap<String, PathBuf> {
    static CORPUS: OnceLock<HashMap<String, PathBuf>> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let made = Command::new(root.join("scripts/jfr-corpus.sh")).output().expect("bash");
        assert!(made.status.success(), "jfr-corpus.sh: {}", String::from_utf8_lossy(&made.stderr));
        let directory = PathBuf::from(String::from_utf8(made.stdout).unwrap().trim());
        let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let recordings = files.filter(|path| path.extension().is_some_and(|extension| extension == "jfr"));
        recordings.map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), path)).collect()
    })
}

/// The recordings for whose names `wanted` is true, in the order of their names.
///
/// # Panics
/// If there is no such recording.
pub(crate) fn recordings(wanted: impl Fn(&str) -> bool) -> Vec<(&'static str, Vec<u8>)> {
    let mut found: Vec<_> = corpus().iter().filter(|(name, _)| wanted(name)).collect();
    assert!(!found.is_empty(), "no such recording");
    found.sort();
    found.into_iter().map(|(name, path)| (&**name, std::fs::read(path).unwrap())).collect()
}

/// The program `jfr` of the newest full JDK in Debian's directory.
pub(crate) fn jfr_program() -> Option<PathBuf> {
    let homes = std::fs::read_dir("/usr/lib/jvm").ok()?.map(|home| home.unwrap().path());
    let mut programs: Vec<_> = homes.map(|home| home.join("bin/jfr")).filter(|jfr| jfr.is_file()).collect();
    // The directory has JDK 17 and Temurin 25, recognised by name. The newest reader knows the most event
    // types.
    programs.sort_by_key(|path| path.to_string_lossy().contains("25"));
    programs.pop()
}

/// Each event of a file in the JDK's output, in one line, with its fields in order. Without a JDK, returns
/// `None` and reports that the test is skipped.
///
/// # Panics
/// If the JDK cannot read the file.
pub(crate) fn printed_by_jdk(recording: &Path) -> Option<Vec<String>> {
    let Some(jfr) = jfr_program() else {
        not_tested("no JDK with bin/jfr in /usr/lib/jvm to compare with");
        return None;
    };
    let mut jfr = Command::new(jfr)
        .args(["print", "--json", "--stack-depth", "4096"])
        .arg(recording)
        // Times are printed in the zone of the environment.
        .env("TZ", "UTC")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut events = Vec::new();
    let mut event = String::new();
    // The output for a small recording has hundreds of megabytes, so events are taken one at a time. The
    // indentation shows where they begin.
    for line in BufReader::new(jfr.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        match &*line {
            "{" | "  \"recording\": {" | "  }" | "}" => {}
            "    \"events\": [{" | "    \"events\": []" => event.push('{'),
            "    }, {" | "    }]" => {
                event.push('}');
                let parsed: Value = serde_json::from_str(&event).expect(&event);
                events.push(parsed.to_string());
                event.clear();
                event.push('{');
            }
            _ => event.push_str(line.trim_start()),
        }
    }
    assert!(jfr.wait().unwrap().success(), "jfr print {}", recording.display());
    events.sort_unstable();
    Some(events)
}

/// The number of events of each type in the JDK's count. Without a JDK, returns `None` and reports that the
/// test is skipped.
///
/// # Panics
/// If the JDK cannot read the recording.
pub(crate) fn counted_by_jdk(recording: &str) -> Option<HashMap<String, u64>> {
    let Some(jfr) = jfr_program() else {
        not_tested("no JDK with bin/jfr in /usr/lib/jvm to compare with");
        return None;
    };
    let printed = Command::new(jfr).arg("summary").arg(&corpus()[recording]).output().unwrap();
    assert!(printed.status.success(), "jfr summary {recording}");
    let printed = String::from_utf8(printed.stdout).unwrap();
    let table = printed.lines().skip_while(|line| !line.starts_with("====")).skip(1);
    let rows = table.map(|row| row.split_whitespace().collect::<Vec<_>>());
    Some(rows.filter(|row| row.len() == 3).map(|row| (row[0].into(), row[1].parse().unwrap())).collect())
}
