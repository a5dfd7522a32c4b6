//! The results of a run: the report, the pages, and the kept profiles, of all that was written until the
//! program's end.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::outputs::Outputs;
use super::profile_folder::{ProcessFile, ProfileFolder};
use crate::cli::{flamegraph, report, terminal, whole_file, whole_messages};

/// The options of the report.
#[derive(Debug, clap::Args)]
pub(super) struct ReportArgs {
    /// The kind of profile that is reported, such as cpu, wall or alloc-space [default: cpu]
    #[arg(long = "type", value_name = "NAME")]
    measure: Option<String>,
    /// Report this many functions
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
}

/// Writes a line to standard error. A closed standard error is no reason to end.
pub(super) fn say(line: &str) {
    let _ = writeln!(terminal::stderr(), "otlpprof: {line}");
}

/// Writes all results. A line reports each that fails. Returns the pages.
pub(super) fn write(
    report: &ReportArgs,
    outputs: &Outputs,
    folder: &ProfileFolder,
    library: &Path,
) -> Vec<PathBuf> {
    let files = match folder.files() {
        Ok(files) => whole_files(files, library),
        Err(error) => {
            say(&format!("{error:#}"));
            return Vec::new();
        }
    };
    if files.is_empty() {
        say("no profile was written: no JVM has run under the agent, or none had a sample");
        return Vec::new();
    }
    let succeeds = |result: anyhow::Result<()>| result.map_err(|error| say(&format!("{error:#}"))).is_ok();
    for kept in &outputs.profiles {
        if succeeds(keep(&files, kept)) {
            say(&format!("{} written: otlpprof report shows it", kept.display()));
        }
    }
    let by = (files.len() > 1).then_some("process");
    let _ = writeln!(terminal::stderr());
    let report = report::Args::of_files(files.clone(), report.measure.clone(), report.top, by);
    succeeds(report::print_to_stderr(&report));
    let _ = writeln!(terminal::stderr());
    let pages = outputs.pages.iter();
    pages.filter(|page| succeeds(flamegraph::write_page(&files, page))).cloned().collect()
}

/// The files that have messages, without parts of messages.
fn whole_files(files: Vec<ProcessFile>, library: &Path) -> Vec<PathBuf> {
    let mut whole = Vec::new();
    for ProcessFile { pid, path } in files {
        if has_mapped(pid, library) {
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

/// Whether a process runs that has the library mapped. Another process may have the id meanwhile.
fn has_mapped(pid: u32, library: &Path) -> bool {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    String::from_utf8_lossy(&maps).contains(&*library.to_string_lossy())
}

/// Writes the files one after another to one file: their messages are framed.
fn keep(files: &[PathBuf], output: &Path) -> anyhow::Result<()> {
    let written = whole_file::write(output, |out| {
        files.iter().try_for_each(|file| io::copy(&mut File::open(file)?, out).map(drop))
    });
    written.with_context(|| output.display().to_string())
}
