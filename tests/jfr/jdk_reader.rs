//! Recordings as the JDK's own reader prints and counts them.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use otlpprof_testkit::recordings::{corpus, jfr_program};
use otlpprof_testkit::skipped::not_tested;
use serde_json::Value;

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
