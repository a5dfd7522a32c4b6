//! The results of commands that profile: the report, the pages, and the kept profiles.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::output_args::OutputFiles;
use super::report::DEFAULT_TOP;
use super::report::idle_args::IdleArgs;
use super::report::selection_args::SelectionArgs;
use super::terminal::is_closed_pipe;
use super::{flamegraph, report, terminal, whole_file};

/// The options of the report.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ReportArgs {
    /// The kind of profile that is reported, such as cpu, wall or alloc-space [default: cpu]
    #[arg(long = "type", value_name = "NAME")]
    measure: Option<String>,
    /// Report this many functions
    #[arg(long, value_name = "N", default_value_t = DEFAULT_TOP)]
    top: usize,
    /// Show idle threads of the VM and of native code in the report and the page of wall-clock time
    #[arg(long)]
    idle: bool,
    /// Report the functions of the VM's own threads too, which are otherwise a row each for JIT compilers,
    /// garbage collection and the rest
    #[arg(long)]
    vm: bool,
}

/// The stream that a report goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// Standard output.
    Output,
    /// Standard error, since standard output belongs to a program.
    Error,
}

/// The results that were written.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) pages: Vec<PathBuf>,
    /// Whether a result is missing. A line has reported each.
    pub(super) has_failed: bool,
}

/// Writes a line to standard error. A closed standard error is no reason to end.
pub(super) fn say(line: &str) {
    let _ = writeln!(terminal::stderr(), "otlpprof: {line}");
}

/// Writes all results of these files, one for each process. A line reports each that fails.
pub(super) fn write(report: &ReportArgs, outputs: &OutputFiles, files: &[PathBuf], to: Stream) -> Written {
    let mut written = Written::default();
    let mut succeeds = |result: anyhow::Result<()>| match result {
        Err(error) if !is_closed_pipe(&error) => {
            say(&format!("{error:#}"));
            written.has_failed = true;
            false
        }
        _ => true,
    };
    for kept in &outputs.profiles {
        if succeeds(keep(files, kept)) {
            say(&format!("{} written: otlpprof report shows it", kept.display()));
        }
    }
    let by = (files.len() > 1).then_some("process");
    let idle = IdleArgs::of(report.idle);
    let reported = SelectionArgs::of_measure(report.measure.clone(), idle);
    let report = report::Args::of_files(files.to_vec(), reported, report.top, by, report.vm);
    match to {
        Stream::Output => _ = succeeds(report::run(&report).map(drop)),
        Stream::Error => {
            let _ = writeln!(terminal::stderr());
            succeeds(report::print_to_stderr(&report));
            let _ = writeln!(terminal::stderr());
        }
    }
    let on_page = SelectionArgs::of_measure(None, idle);
    let pages = outputs.pages.iter();
    let pages =
        pages.filter(|page| succeeds(flamegraph::write_page(files, &on_page, page))).cloned().collect();
    Written { pages, ..written }
}

/// Writes the files one after another to one file: their messages are framed.
fn keep(files: &[PathBuf], output: &Path) -> anyhow::Result<()> {
    let written = whole_file::write(output, |out| {
        files.iter().try_for_each(|file| io::copy(&mut File::open(file)?, out).map(drop))
    });
    written.with_context(|| output.display().to_string())
}
