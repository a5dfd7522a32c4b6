//! The lines above a report: the measure, its total, the services and the time, the shares of the kinds of
//! code, the processes, and the other measures.

use std::io::{self, Write};

use otlpprof_report::code_kind::KindSums;
use otlpprof_report::measure::Measure;
use otlpprof_report::survey::Survey;

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
    /// The measure that is shown.
    pub(super) measure: &'h Measure,
    /// The unit in which the measure is shown.
    pub(super) unit: &'h str,
    /// The total.
    pub(super) whole: i64,
    /// The first time that is selected, in ns since 1970.
    pub(super) from_ns: u64,
    /// The time that the profiles cover, in ns.
    pub(super) profiled_ns: u64,
    /// The part that the options select, if they do not select everything.
    pub(super) selected: Option<Selected<'h>>,
    /// The sum of idle threads that are left out.
    pub(super) idle: i64,
    /// The sums by kind of code, if they are known.
    pub(super) kinds: Option<KindSums>,
    /// The command that has the options which the lines name, with a space behind it; empty for this one.
    pub(super) command: &'h str,
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
    let Head { survey, measure, unit, whole, from_ns, profiled_ns, selected, idle, kinds, command } = head;
    let services = survey.service_names();
    let of = if services.is_empty() { String::new() } else { format!(" of {services}") };
    let during = match (survey.times, profiled_ns) {
        (Some((first, _)), 1..) => {
            let profiled = amount(i64::try_from(profiled_ns).unwrap_or(i64::MAX), "nanoseconds");
            format!(" in {profiled}, from {}", time::utc_seconds(first.max(from_ns)))
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
    let processes = processes::in_words(&survey.resources);
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
