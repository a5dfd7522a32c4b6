//! A report of one set of profiles.

use std::io::{self, Write};

use anyhow::ensure;
use otlpprof_model::attribute_keys;
use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_report::attribute_sums::AttributeSums;
use otlpprof_report::code_kind::StackCodes;
use otlpprof_report::collect::{Collected, SelfValues, is_countable, total};
use otlpprof_report::function_sums::SortBy;
use otlpprof_report::sample_reader::{SampleForm, SampleReader, SampleSink};
use otlpprof_report::selection::Selection;
use otlpprof_report::survey::Survey;
use otlpprof_report::whole_sum::WholeSum;

use super::amount::{amount, percent};
use super::args::Args;
use super::conditions;
use super::groups::by_total;
use super::head::{self, Covered, Head, Selected};
use super::inputs::ProfileInputs;
use super::json;
use super::kinds;
use super::labels;
use super::peek::{self, PeekOptions};
use super::style::Style;
use super::table::{self, TableOptions};
use super::tree::{self, TreeOptions};
use super::waits;
use crate::format_args::Format;

/// Writes the report that the options request.
pub(super) fn run(
    args: &Args,
    style: Style,
    inputs: &ProfileInputs,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let measure = inputs.measure(args.selection.measure())?;
    let selection = args.selection.selection(&inputs.survey, measure.is_snapshot())?;
    let (form, window) = (args.stacks.form(), selection.window);
    let mut reader = SampleReader::new(&selection, form);
    let mut all =
        (!selection.is_everything()).then(|| WholeSum::new(measure, form.weight, selection.without_idle));
    let (mut conditions, in_words) = (args.selection.conditions(), conditions::in_words(&selection));
    let head = |whole, covered, kinds, all: Option<WholeSum<'_>>, idle| Head {
        survey: &inputs.survey,
        covered,
        measure,
        unit: form.weight.unit(measure),
        whole,
        selected: all.map(|all| Selected { conditions: &in_words, of: all.sum() }),
        idle,
        kinds,
        waits: None,
        command: "",
    };
    if args.labels {
        let mut sums = AttributeSums::new(measure, window);
        read(inputs, &mut reader, &mut all, &mut sums)?;
        conditions::check_selected(inputs, reader.selected_samples, &conditions)?;
        ensure!(sums.whole() < i64::MAX, TOO_LARGE);
        let covered = Covered::of(&sums.time, &reader.selected, window);
        let head = head(sums.whole(), covered, None, all, reader.idle);
        match args.form.format() {
            Format::Json => json::print_labels(head, &sums.into_attributes(), args.most(), out)?,
            Format::Text => labels::print(head, sums, args.most(), out)?,
        }
        return Ok(());
    }
    let mut collected = Collected::new(measure, window, args.group_key());
    read(inputs, &mut reader, &mut all, &mut collected)?;
    if let Some(condition) = args.group_condition().filter(|_| !collected.has_group) {
        if reader.selected_samples > 0 {
            conditions::check_exist(&[inputs], std::slice::from_ref(&condition))?;
        }
        conditions.push(condition);
    }
    conditions::check_selected(inputs, reader.selected_samples, &conditions)?;
    let stacks = StackCodes::of(&reader.tree, &reader.frames);
    let kinds = collected.kinds(&stacks);
    let waits = collected.waits(&stacks, &reader.tree, &reader.frames);
    let is_folded = args.folds_vm_threads() && fold_vm_threads(&mut collected, &stacks, &mut reader);
    let own = collected.merged();
    check_sum(&own)?;
    let covered = Covered::of(&collected.time, &reader.selected, window);
    let head = head(total(&own), covered, kinds, all, reader.idle);
    let head = Head { waits: waits.as_ref(), ..head };
    match args.form.format() {
        Format::Json => json::print(args, head, &reader, &collected, &own, out)?,
        Format::Text => {
            head::print(head, out)?;
            waits::print(head, args.most(), style, out)?;
            print_samples(args, style, head, &reader, &collected, &own, out)?;
            print_folded(is_folded, head.command, out)?;
        }
    }
    Ok(())
}

/// Passes the selected samples of all messages to `sink`, and the messages to `all`.
fn read(
    inputs: &ProfileInputs,
    reader: &mut SampleReader<'_>,
    all: &mut Option<WholeSum<'_>>,
    sink: &mut impl SampleSink,
) -> anyhow::Result<()> {
    inputs.read_beside(reader, sink, |message| all.iter_mut().for_each(|all| all.add(message)))
}

/// Replaces the functions of the VM's own threads by a row for each kind of code. Returns whether there are
/// any.
fn fold_vm_threads(
    collected: &mut Collected<'_>,
    stacks: &StackCodes,
    reader: &mut SampleReader<'_>,
) -> bool {
    collected.fold_vm_threads(stacks, &mut reader.tree, &mut reader.frames, kinds::threads)
}

/// Writes the line below tables in which the VM's own threads are folded. `command` has the option, with a
/// space behind it; it is empty for this command.
fn print_folded(is_folded: bool, command: &str, out: &mut dyn Write) -> io::Result<()> {
    match is_folded {
        true => writeln!(out, "{command}--vm shows the functions of the VM's threads"),
        false => Ok(()),
    }
}

/// The reason for which sums that were cut are not shown.
const TOO_LARGE: &str = "the values add up to 2^63 - 1 or more: select a part of the samples";

/// Fails if the values are too many to be added up.
pub(super) fn check_sum(own: &SelfValues) -> anyhow::Result<()> {
    ensure!(is_countable(own), TOO_LARGE);
    Ok(())
}

/// Writes the samples in the form that the options request, for each group if there are groups. `own` has the
/// self values of all of them.
fn print_samples(
    args: &Args,
    style: Style,
    head: Head<'_>,
    reader: &SampleReader<'_>,
    collected: &Collected<'_>,
    own: &SelfValues,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Head { unit, whole, .. } = head;
    let Some(key) = args.group_key() else { return print_stacks(args, style, head, reader, own, out) };
    for (at, (name, own)) in by_total(collected).iter().enumerate() {
        let name = if name.is_empty() { "(none)" } else { name };
        let (value, share) = (amount(total(own), unit), percent(total(own), whole));
        out.write_all(if at > 0 { b"\n" } else { b"" })?;
        let programs = match key {
            attribute_keys::PROCESS_PID => head.covered.resources.programs_of(name),
            _ => String::new(),
        };
        let of = if programs.is_empty() { programs } else { format!(" ({programs})") };
        writeln!(out, "{key} = {name}{of}: {value}, {share:.1} %")?;
        print_stacks(args, style, head, reader, own, out)?;
    }
    Ok(())
}

/// Writes stacks as callers and callees, as a tree or as a table.
fn print_stacks(
    args: &Args,
    style: Style,
    head: Head<'_>,
    reader: &SampleReader<'_>,
    own: &SelfValues,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Head { unit, whole, .. } = head;
    let (tree, frames, sort_by, most) = (&reader.tree, &reader.frames, args.sort_by(), args.most());
    if let Some(matching) = &args.peek {
        let options = PeekOptions { matching, unit, sort_by, most, whole, style };
        return peek::print(tree, frames, own, options, out);
    }
    if args.tree {
        let (least_percent, is_inverted) = (args.least, args.inverted);
        let options = TreeOptions { unit, least_percent, whole, is_inverted, style };
        return tree::print(&args.calls(tree, own, whole), frames, options, out);
    }
    table::print(tree, frames, own, TableOptions { unit, sort_by, most, whole, style }, out)
}

/// Bytes that the frames and stacks of an overview may occupy besides the size of the largest message.
const OF_OVERVIEW: usize = 32 << 20;

/// Writes the report that a user gets without options, with at most `most` functions, and an empty line.
/// Writes nothing if there are no profiles. `each_message` calls its argument with all messages. The memory
/// is bounded: too many different stacks are one line instead of a table.
pub(crate) fn print_overview(
    survey: &Survey,
    lines: bool,
    most: usize,
    each_message: impl FnOnce(&mut dyn FnMut(&EncodedMessage)) -> anyhow::Result<()>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let Some(measure) = survey.measure(None) else { return Ok(()) };
    let selection = Selection { without_idle: true, ..Selection::default() };
    let form = SampleForm { lines, ..SampleForm::default() };
    let mut reader = SampleReader::new(&selection, form).with_bound(OF_OVERVIEW + survey.largest_message);
    let mut collected = Collected::new(measure, selection.window, None);
    each_message(&mut |message| reader.read(message, &mut collected))?;
    if reader.is_full() {
        return Ok(writeln!(out, "too many different stacks for a table: otlpprof report shows it\n")?);
    }
    let stacks = StackCodes::of(&reader.tree, &reader.frames);
    let kinds = collected.kinds(&stacks);
    let is_folded = fold_vm_threads(&mut collected, &stacks, &mut reader);
    let (own, unit) = (collected.merged(), &*measure.unit);
    let whole = total(&own);
    let head = Head {
        survey,
        covered: Covered::of(&collected.time, &reader.selected, selection.window),
        measure,
        unit,
        whole,
        selected: None,
        idle: reader.idle,
        kinds,
        waits: None,
        command: "otlpprof report ",
    };
    head::print(head, out)?;
    let options = TableOptions { unit, sort_by: SortBy::Own, most, whole, style: Style::of_stdout() };
    table::print(&reader.tree, &reader.frames, &own, options, out)?;
    print_folded(is_folded, head.command, out)?;
    Ok(writeln!(out)?)
}
