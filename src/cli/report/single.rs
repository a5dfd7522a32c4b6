//! A report of one set of profiles.

use std::cmp::Reverse;
use std::io::{self, Write};

use anyhow::ensure;

use super::amount::{amount, percent};
use super::head::{self, Head};
use super::inputs::ProfileInputs;
use super::style::Style;
use super::table::{self, TableOptions};
use super::tree::{self, TreeOptions};
use super::{Args, json, peek};
use crate::cli::Format;
use crate::model::attribute_keys;
use crate::otlp::encoded::EncodedMessage;
use crate::report::collect::{Collected, SelfValues, is_countable, total};
use crate::report::function_sums::SortBy;
use crate::report::sample_reader::{SampleForm, SampleReader};
use crate::report::selection::Selection;
use crate::report::survey::Survey;

/// Writes the report that the options request.
pub(super) fn run(
    args: &Args,
    style: Style,
    inputs: &ProfileInputs,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let measure = inputs.measure(args.selection.measure())?;
    let selection = args.selection.selection(&inputs.survey, measure.is_snapshot())?;
    let mut reader = SampleReader::new(&selection, args.stacks.form());
    let mut collected = Collected::new(measure, selection.window, args.group_key());
    inputs.each_message(|message| reader.read(&message, &mut collected))?;
    inputs.note_if_empty(reader.selected_samples)?;
    let own = collected.merged();
    check_sum(&own)?;
    let head = Head {
        survey: &inputs.survey,
        measure,
        unit: args.stacks.weight().unit(measure),
        whole: total(&own),
        from_ns: selection.window.from_ns,
        profiled_ns: collected.profiled_ns(),
        choose: "--type",
    };
    match args.format {
        Format::Json => json::print(args, head, &reader, &collected, out)?,
        Format::Text => {
            head::print(head, out)?;
            print_samples(args, style, head, &reader, &collected, out)?;
        }
    }
    Ok(())
}

/// Fails if the values are too many to be added up.
pub(super) fn check_sum(own: &SelfValues) -> anyhow::Result<()> {
    ensure!(is_countable(own), "the values add up to 2^63 - 1 or more: select a part of the samples");
    Ok(())
}

/// Writes the samples in the form that the options request.
fn print_samples(
    args: &Args,
    style: Style,
    head: Head<'_>,
    reader: &SampleReader<'_>,
    collected: &Collected<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Head { unit, whole, .. } = head;
    let (tree, frames, own) = (&reader.tree, &reader.frames, collected.merged());
    if let Some(matching) = &args.peek {
        return peek::print(tree, frames, &own, matching, unit, out);
    }
    if args.tree {
        return tree::print(tree, frames, &own, TreeOptions { unit, least_percent: args.least, style }, out);
    }
    let options = TableOptions { unit, sort_by: args.sort_by(), most: args.most(), whole, style };
    let Some(key) = args.group_key() else { return table::print(tree, frames, &own, options, out) };
    let mut groups: Vec<_> = collected.groups().into_iter().collect();
    groups.sort_by_cached_key(|(name, own)| (Reverse(total(own)), *name));
    for (at, (name, own)) in groups.iter().enumerate() {
        let name = if name.is_empty() { "(none)" } else { name };
        let (value, share) = (amount(total(own), unit), percent(total(own), whole));
        out.write_all(if at > 0 { b"\n" } else { b"" })?;
        let programs = match key {
            attribute_keys::PROCESS_PID => head.survey.resources.programs_of(name),
            _ => String::new(),
        };
        let of = if programs.is_empty() { programs } else { format!(" ({programs})") };
        writeln!(out, "{key} = {name}{of}: {value}, {share:.1} %")?;
        table::print(tree, frames, own, options, out)?;
    }
    Ok(())
}

/// Bytes that the frames and stacks of an overview may occupy besides the size of the largest message.
const OF_OVERVIEW: usize = 32 << 20;

/// Writes the report that a user gets without options, with at most `most` functions, and an empty line.
/// Writes nothing if there are no profiles. `each_message` calls its argument with all messages. The memory
/// is bounded: too many different stacks are one line instead of a table.
pub(in crate::cli) fn print_overview(
    survey: &Survey,
    lines: bool,
    most: usize,
    each_message: impl FnOnce(&mut dyn FnMut(&EncodedMessage)) -> anyhow::Result<()>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let Some(measure) = survey.measure(None) else { return Ok(()) };
    let selection = Selection::default();
    let form = SampleForm { lines, ..SampleForm::default() };
    let mut reader = SampleReader::new(&selection, form).with_bound(OF_OVERVIEW + survey.largest_message);
    let mut collected = Collected::new(measure, selection.window, None);
    each_message(&mut |message| reader.read(message, &mut collected))?;
    if reader.is_full() {
        return Ok(writeln!(out, "too many different stacks for a table: otlpprof report shows it\n")?);
    }
    let (own, unit) = (collected.merged(), &*measure.unit);
    let (whole, profiled_ns) = (total(&own), collected.profiled_ns());
    let choose = "otlpprof report --type";
    head::print(Head { survey, measure, unit, whole, from_ns: 0, profiled_ns, choose }, out)?;
    let options = TableOptions { unit, sort_by: SortBy::Own, most, whole, style: Style::of_stdout() };
    table::print(&reader.tree, &reader.frames, &own, options, out)?;
    Ok(writeln!(out)?)
}
