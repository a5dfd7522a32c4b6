//! A report of the change between two sets of profiles.

use std::io::Write;

use otlpprof_report::collect::{Collected, total};
use otlpprof_report::measure::Measure;
use otlpprof_report::sample_reader::SampleReader;
use otlpprof_report::selection::Selection;
use otlpprof_report::sides;
use otlpprof_report::whole_sum::WholeSum;

use super::args::Args;
use super::compare_args::{empty_side, measure_of_either};
use super::conditions;
use super::diff::{Changes, DiffOptions, Side};
use super::idle_args;
use super::inputs::ProfileInputs;
use super::json;
use super::json::ChangesHead;
use super::single::check_sum;
use super::style::Style;
use crate::format_args::Format;

/// Writes the change from `base` to `new`.
pub(super) fn run(
    args: &Args,
    style: Style,
    base: &ProfileInputs,
    new: &ProfileInputs,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let measure = measure_of_either(base, new, args.selection.measure())?;
    let is_snapshot = measure.is_snapshot();
    // Times relative to the end are relative to the end of each side.
    let of_base = args.selection.selection(&base.survey, is_snapshot)?;
    let of_new = args.selection.selection(&new.survey, is_snapshot)?;
    let mut reader = SampleReader::new(&of_new, args.stacks.form());
    let base_side = read(base, measure, &of_base, &mut reader)?;
    let base_labels = std::mem::take(&mut reader.label_keys);
    let new_side = read(new, measure, &of_new, &mut reader)?;
    if reader.selected_samples == 0 {
        conditions::check_exist(&[base, new], &args.selection.conditions())?;
    }
    args.compare.check_times([base_side.profiled_ns, new_side.profiled_ns])?;
    let options = DiffOptions {
        unit: args.stacks.weight().unit(measure),
        sort_by: args.sort_by(),
        comparison: args.compare.comparison(),
        most: args.most(),
    };
    [&base_side, &new_side].into_iter().try_for_each(|side| check_sum(&side.own))?;
    let has_values = [&base_side, &new_side].map(|side| side.own.values().any(|&value| value != 0));
    let empty = empty_side(has_values, [base_side.idle, new_side.idle])?;
    let mut notes = sides::differences([&base.survey, &new.survey], [&base_labels, &reader.label_keys]);
    notes.extend(empty.map(str::to_owned));
    let in_words = conditions::in_words(&of_new);
    let changes = Changes::between(&reader.tree, &reader.frames, [&base_side, &new_side], options);
    match args.form.format() {
        Format::Json => {
            let heading = ChangesHead { measure, conditions: &in_words, notes: &notes };
            json::print_changes(heading, &changes, &reader.frames, options, out)?;
        }
        Format::Text => {
            let samples = if options.unit == measure.unit { "" } else { " samples" };
            writeln!(out, "{}{samples}", measure.name)?;
            changes.print_totals(options, out)?;
            if !in_words.is_empty() {
                let shares = changes.selected_shares();
                writeln!(out, "selected ({}): {shares}", in_words.join(", "))?;
            }
            if let Some(line) = idle_args::line_of_sides(changes.idle, changes.wholes) {
                writeln!(out, "{line}")?;
            }
            notes.iter().try_for_each(|note| writeln!(out, "{note}"))?;
            changes.print_functions(&reader.frames, options, style, out)?;
        }
    }
    Ok(())
}

/// Reads one side.
fn read(
    inputs: &ProfileInputs,
    measure: &Measure,
    selection: &Selection,
    reader: &mut SampleReader<'_>,
) -> anyhow::Result<Side> {
    let mut collected = Collected::new(measure, selection.window, None);
    let mut all = (!selection.is_everything())
        .then(|| WholeSum::new(measure, reader.form().weight, selection.without_idle));
    (reader.window, reader.idle) = (selection.window, 0);
    inputs.read_beside(reader, &mut collected, |message| all.iter_mut().for_each(|all| all.add(message)))?;
    let own = collected.merged();
    let total_of_all = all.map_or_else(|| total(&own), |all| all.sum());
    Ok(Side { own, total_of_all, profiled_ns: collected.time.total_ns(), idle: reader.idle })
}
