//! The profiles that the processes of a run have written until the program's end.

use std::fs;
use std::path::{Path, PathBuf};

use super::jvm_watch::{self, SeenJvm, SeenJvms};
use super::launcher::Loading;
use super::profile_folder::{ProcessFile, ProfileFolder};
use crate::results::say;
use crate::whole_messages;

/// The most JVMs that a line names.
const MOST_NAMED: usize = 3;

/// The files that have messages. A line reports each problem, JVMs without the agent, and the absence of
/// profiles.
pub(super) fn files(
    folder: &ProfileFolder,
    library: &Path,
    seen: &SeenJvms,
    loading: Loading,
) -> Vec<PathBuf> {
    let files = match folder.files() {
        Ok(files) => files,
        Err(error) => {
            say(&format!("{error:#}"));
            return Vec::new();
        }
    };
    let profiled: Vec<_> = files.iter().map(|file| file.pid).collect();
    let files = whole_files(files, library);
    let escaped: Vec<_> = seen.without_agent.iter().filter(|jvm| !profiled.contains(&jvm.pid)).collect();
    match (files.is_empty(), &escaped[..], &seen.with_agent[..]) {
        (false, [], _) => {}
        (false, escaped, _) => say(&without_agent(escaped, loading)),
        (true, escaped @ [_, ..], _) => {
            say(&format!("no profile was written: {}", without_agent(escaped, loading)));
        }
        (true, [], with_agent @ [_, ..]) => {
            let jvms = named(&with_agent.iter().collect::<Vec<_>>());
            let place = folder.path().display();
            say(&format!(
                "no profile was written: {jvms} ran with the agent and had no sample, or could not write to \
                 {place}"
            ));
        }
        (true, [], []) => say("no profile was written: no JVM was seen among the program's processes"),
    }
    files
}

/// The line on JVMs that have run without the agent, with the remedy.
fn without_agent(jvms: &[&SeenJvm], loading: Loading) -> String {
    let remedy = match loading {
        Loading::Variable => {
            "sudo, env -i, unset and the like drop JAVA_TOOL_OPTIONS, which loads it; keep the variable, \
             start that JVM with -agentpath, or use `otlpprof record`"
        }
        Loading::Argument => {
            "JVMs that a program of `java` starts are not profiled; `otlpprof run -- env java …` profiles \
             them"
        }
    };
    format!("{} ran without the agent: {remedy}", named(jvms))
}

/// The processes with their main classes.
fn named(jvms: &[&SeenJvm]) -> String {
    let mut names: Vec<_> =
        jvms.iter().take(MOST_NAMED).map(|jvm| format!("process {} ({})", jvm.pid, jvm.main)).collect();
    if let more @ 1.. = jvms.len().saturating_sub(MOST_NAMED) {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

/// The files that have messages, without parts of messages.
fn whole_files(files: Vec<ProcessFile>, library: &Path) -> Vec<PathBuf> {
    let mut whole = Vec::new();
    for ProcessFile { pid, path } in files {
        if jvm_watch::has_agent(pid, library) {
            say(&format!("process {pid} has not ended: only the profiles until now are shown"));
        }
        match whole_messages::cut(&path) {
            Ok(0) => {}
            Ok(bytes) => say(&format!("process {pid}: {bytes} bytes of an unfinished message are left out")),
            Err(error) => say(&format!("process {pid}: {error}")),
        }
        if fs::metadata(&path).is_ok_and(|file| file.len() > 0) {
            whole.push(path);
        }
    }
    whole
}
