//! The lines above a report: the measure, its total, the services and the time, the shares of the kinds of
//! code, the processes, and the other measures.

use std::io::{self, Write};

use otlpprof_report::code_kind::KindSums;
use otlpprof_report::measure::Measure;
use otlpprof_report::profiled_time::ProfiledTime;
use otlpprof_report::resource_survey::ResourceSurvey;
use otlpprof_report::selected_resources::SelectedResources;
use otlpprof_report::selection::Window;
use otlpprof_report::survey::Survey;
use otlpprof_report::waits::Waits;

use super::amount::{amount, percent};
use super::idle_args;
use super::kinds;
use super::processes;
use crate::print::time;

/// The contents of the lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'h> {
    /// The outline of the files.
    pub(super) survey: &'h Survey,
    /// The processes and the time that are selected.
    pub(super) covered: Covered<'h>,
    /// The measure that is shown.
    pub(super) measure: &'h Measure,
    /// The unit in which the measure is shown.
    pub(super) unit: &'h str,
    /// The total.
    pub(super) whole: i64,
    /// The part that the options select, if they do not select everything.
    pub(super) selected: Option<Selected<'h>>,
    /// The sum of idle threads that are left out.
    pub(super) idle: i64,
    /// The sums by kind of code, if they are known.
    pub(super) kinds: Option<KindSums>,
    /// The waits of threads, if there are any.
    pub(super) waits: Option<&'h Waits>,
    /// The command that has the options which the lines name, with a space behind it; empty for this one.
    pub(super) command: &'h str,
}

/// The processes and the time that selected profiles cover.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covered<'h> {
    /// The resources, which tell the processes.
    pub(super) resources: &'h ResourceSurvey,
    /// The first time in the selected window, in ns since 1970; `None` if unknown.
    pub(super) start_ns: Option<u64>,
    /// The length of the time, in ns.
    pub(super) profiled_ns: u64,
}

impl<'h> Covered<'h> {
    /// The profiles of these resources in the window, among the profiles that cover this time.
    pub(super) fn of(time: &ProfiledTime, selected: &'h SelectedResources, window: Window) -> Self {
        Self {
            resources: &selected.survey,
            start_ns: time.start_ns(selected, window),
            profiled_ns: time.selected_ns(selected),
        }
    }
}

/// A selected part of the samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selected<'h> {
    /// The conditions in words.
    pub(super) conditions: &'h [String],
    /// The total without the conditions.
    pub(super) of: i64,
}

/// Writes the lines, and an empty one.
pub(super) fn print(head: Head<'_>, out: &mut dyn Write) -> io::Result<()> {
    let Head { survey, covered, measure, unit, whole, selected, idle, kinds, command, .. } = head;
    let Covered { resources, start_ns, profiled_ns } = covered;
    let services = resources.service_names();
    let of = if services.is_empty() { String::new() } else { format!(" of {services}") };
    let during = match (start_ns, profiled_ns) {
        (Some(start_ns), 1..) => {
            let profiled = amount(i64::try_from(profiled_ns).unwrap_or(i64::MAX), "nanoseconds");
            format!(" in {profiled}, from {}", time::utc_seconds(start_ns))
        }
        _ => String::new(),
    };
    let samples = if unit == measure.unit { "" } else { " samples" };
    writeln!(out, "{}{samples}{of}: {}{during}", measure.name, amount(whole, unit))?;
    if let Some(Selected { conditions, of }) = selected {
        let share = percent(whole, of);
        writeln!(out, "selected ({}): {share:.1} % of {}", conditions.join(", "), amount(of, unit))?;
    }
    let show_idle = format!("{command}--idle");
    if let Some(line) = idle_args::line(idle, whole, unit, &show_idle) {
        writeln!(out, "{line}")?;
    }
    if let Some(line) = kinds.and_then(|kinds| kinds::line(&kinds, whole)) {
        writeln!(out, "{line}")?;
    }
    let processes = processes::in_words(resources);
    if !processes.is_empty() {
        let cores = processes::cores(measure, unit, whole, profiled_ns);
        writeln!(out, "{processes}{}", cores.map_or_else(String::new, |cores| format!("; {cores}")))?;
    }
    let others: Vec<_> = survey.measures.keys().filter(|other| *other != measure).collect();
    if !others.is_empty() {
        let names: Vec<_> = others.iter().map(|other| &*other.name).collect();
        writeln!(out, "also in the files ({command}--type): {}", names.join(", "))?;
    }
    writeln!(out)
}
