//! `otlpprof report`: the functions in which the time went, of the selected samples.

pub(super) mod amount;
mod diff;
pub(super) mod inputs;
mod peek;
pub(super) mod selection_args;
mod style;
mod table;
mod time_bound;
mod tree;

use std::cmp::Reverse;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use regex::Regex;

use self::inputs::ProfileInputs;
use self::selection_args::SelectionArgs;
use self::style::Style;
use super::print::time;
use super::terminal::{self, Terminal};
use crate::model::attribute_keys;
use crate::report::collect::{Collected, SelfValues};
use crate::report::function_sums::SortBy;
use crate::report::measure::Measure;
use crate::report::sample_reader::SampleReader;
use crate::report::survey::Survey;

/// Show in which functions the time went
///
/// Prints the functions with the highest values over all files: self (the function itself) and total (with
/// the functions that it calls).
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files of OTLP profiles: protobuf, plain or length-prefixed, or OTLP/JSON, gzipped or not; - is
    /// standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Print this many functions
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// The order of functions
    #[arg(long, value_enum, default_value_t)]
    sort: Sort,
    /// Count each source line by itself
    #[arg(long)]
    lines: bool,
    /// Group samples by this attribute, of the sample, its profile or its resource; `thread` is the thread's
    /// name, `process` the process's id
    #[arg(long, value_name = "KEY", conflicts_with_all = ["diff", "peek"])]
    by: Option<String>,
    /// Print the tree of calls
    #[arg(long, conflicts_with_all = ["diff", "peek"])]
    tree: bool,
    /// With --tree: fold calls below this share, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, requires = "tree")]
    least: f64,
    /// Print the callers and callees of the functions that match this regular expression
    #[arg(long, value_name = "REGEX")]
    peek: Option<Regex>,
    /// Print the change since this file; may be given several times
    #[arg(long, value_name = "BASE", conflicts_with = "peek")]
    diff: Vec<PathBuf>,
}

/// The order of functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Sort {
    /// The function itself
    #[default]
    #[value(name = "self")]
    Own,
    /// With the functions that it calls
    Total,
}

impl Args {
    /// The report of these files: `top` functions of a measure, grouped by an attribute.
    pub(super) fn of_files(
        files: Vec<PathBuf>,
        measure: Option<String>,
        top: usize,
        by: Option<&str>,
    ) -> Self {
        Self {
            files,
            selection: SelectionArgs::of_measure(measure),
            top,
            sort: Sort::default(),
            lines: false,
            by: by.map(str::to_owned),
            tree: false,
            least: 0.0,
            peek: None,
            diff: Vec::new(),
        }
    }

    fn sort_by(&self) -> SortBy {
        match self.sort {
            Sort::Own => SortBy::Own,
            Sort::Total => SortBy::Total,
        }
    }

    /// The attribute by which samples are grouped.
    fn group_key(&self) -> Option<&str> {
        match self.by.as_deref()? {
            "thread" => Some(attribute_keys::THREAD_NAME),
            "process" => Some(attribute_keys::PROCESS_PID),
            key => Some(key),
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut out = terminal::stdout();
    print(args, Style::of_stdout(), &mut out)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the report to standard error, for a command whose standard output belongs to another program.
pub(super) fn print_to_stderr(args: &Args) -> anyhow::Result<()> {
    let mut out = Terminal::new(BufWriter::new(io::stderr().lock()));
    print(args, Style::of_stderr(), &mut out)?;
    Ok(out.flush()?)
}

fn print(args: &Args, style: Style, out: &mut dyn Write) -> anyhow::Result<()> {
    let inputs = ProfileInputs::open(&args.files)?;
    let base = ProfileInputs::open(&args.diff)?;
    let measure = inputs.measure(args.selection.measure.as_deref())?.clone();
    let selection = args.selection.selection(&inputs.survey, measure.is_snapshot())?;
    let mut reader = SampleReader::new(&selection, args.lines);
    let mut new = Collected::new(&measure, selection.window, args.group_key());
    inputs.each_message(|message| reader.read(&message, &mut new))?;
    if base.is_empty() {
        let own = merged(&new);
        print_head(&inputs.survey, &measure, &new, sum(&own), out)?;
        print_samples(args, style, &reader, &measure, &new, &own, out)?;
    } else {
        let of_base = args.selection.selection(&base.survey, measure.is_snapshot())?;
        let mut old = Collected::new(&measure, of_base.window, None);
        base.each_message(|message| reader.read(&message, &mut old))?;
        let options = diff::DiffOptions { unit: &measure.unit, sort_by: args.sort_by(), most: args.top };
        writeln!(out, "{}", measure.name)?;
        diff::print(&reader.tree, &reader.frames, [&merged(&old), &merged(&new)], options, out)?;
    }
    Ok(())
}

/// Writes the samples in the form that the options request. `own` has the self values of all groups.
fn print_samples(
    args: &Args,
    style: Style,
    reader: &SampleReader<'_>,
    measure: &Measure,
    collected: &Collected<'_>,
    own: &SelfValues,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (tree, frames, unit) = (&reader.tree, &reader.frames, &*measure.unit);
    if let Some(matching) = &args.peek {
        return peek::print(tree, frames, own, matching, unit, out);
    }
    if args.tree {
        let options = tree::TreeOptions { unit, least_percent: args.least, style };
        return tree::print(tree, frames, own, options, out);
    }
    let whole = sum(own);
    let options = table::TableOptions { unit, sort_by: args.sort_by(), most: args.top, whole, style };
    let Some(key) = args.group_key() else { return table::print(tree, frames, own, options, out) };
    let mut groups: Vec<_> = collected.groups().into_iter().collect();
    groups.sort_by_cached_key(|(name, own)| (Reverse(sum(own)), *name));
    for (at, (name, own)) in groups.iter().enumerate() {
        let name = if name.is_empty() { "(none)" } else { name };
        let (total, share) = (amount::amount(sum(own), unit), amount::percent(sum(own), whole));
        out.write_all(if at > 0 { b"\n" } else { b"" })?;
        writeln!(out, "{key} = {name}: {total}, {share:.1} %")?;
        table::print(tree, frames, own, options, out)?;
    }
    Ok(())
}

/// The sum of all self values.
fn sum(own: &SelfValues) -> i64 {
    own.values().fold(0, |sum, &value| sum.saturating_add(value))
}

/// The self values of all groups.
fn merged(collected: &Collected<'_>) -> SelfValues {
    let mut sums = SelfValues::default();
    for (node, value) in collected.groups().into_values().flatten() {
        let sum: &mut i64 = sums.entry(node).or_default();
        *sum = sum.saturating_add(value);
    }
    sums
}

/// Writes what is shown: the measure, its total, the services and the time; and the other measures.
fn print_head(
    survey: &Survey,
    measure: &Measure,
    collected: &Collected<'_>,
    whole: i64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let services = survey.service_names();
    let of = if services.is_empty() { String::new() } else { format!(" of {services}") };
    let during = match (survey.times, collected.profiled_ns()) {
        (Some((first, _)), 1..) => {
            let profiled = i64::try_from(collected.profiled_ns()).unwrap_or(i64::MAX);
            let profiled = amount::amount(profiled, "nanoseconds");
            format!(" in {profiled}, from {}", time::utc_seconds(first))
        }
        _ => String::new(),
    };
    writeln!(out, "{}{of}: {}{during}", measure.name, amount::amount(whole, &measure.unit))?;
    let others: Vec<_> = survey.measures.keys().filter(|other| *other != measure).collect();
    if !others.is_empty() {
        let names: Vec<_> = others.iter().map(|other| &*other.name).collect();
        writeln!(out, "also in the files (--type): {}", names.join(", "))?;
    }
    writeln!(out)
}
