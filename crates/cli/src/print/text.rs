//! Messages and sums for people.

use std::io::{self, Write};

use otlpprof_otlp::Form;
use otlpprof_otlp::encoded::{EncodedMessage, EncodedTables};
use otlpprof_otlp::encoded_profiles::EncodedProfile;
use otlpprof_otlp::lookup::DictionaryTables as _;
use otlpprof_otlp::wire::{KeyValue, Value};

use super::super::report::amount::large_amount;
use super::super::report::content::Content;
use super::super::report::profile_file::ProfileFile;
use super::args::Args;
use super::kind::StackSums;
use super::labels::{SHOWN_LABELS, span_text};
use super::sum::Sum;
use super::summary::{LongStacks, ProfileSummary, SampleView, ShownFrames};
use super::sums::Sums;
use super::{raw, time, value};

pub(super) fn print_message(
    file: &ProfileFile,
    message: &EncodedMessage,
    args: &Args,
    out: &mut dyn Write,
) -> io::Result<()> {
    let tables = message.tables();
    let form = match message.form {
        Form::Plain => "protobuf",
        Form::LengthPrefixed => "length-prefixed protobuf",
        Form::Json => "JSON",
    };
    let (path, index, size, place) =
        (file.input.path.display(), message.index, message.size, message.place(0));
    match file.content {
        Content::Otlp => writeln!(out, "{path}: message {index}: {size} bytes of {form} at {place}")?,
        other => writeln!(out, "{path}: message {index}: {size} bytes, made of {}", other.description())?,
    }
    let mut profiles = 0..;
    for resource in message.resources() {
        if args.resource {
            writeln!(out, "resource")?;
            print_inline(tables, resource.resource().unwrap_or_default().attributes, out)?;
        }
        for scope in resource.scopes() {
            if args.resource {
                let of_scope = scope.scope();
                let name = of_scope.as_ref().map(|scope| format!("{} {}", scope.name, scope.version));
                writeln!(out, "scope {}", name.as_deref().unwrap_or("(none)").trim_end())?;
                print_inline(tables, of_scope.unwrap_or_default().attributes, out)?;
            }
            for (profile, index) in scope.profiles().zip(&mut profiles) {
                match args.counters || args.all {
                    true => print_profile(tables, index, profile, args.all, out)?,
                    false => print_outline(tables, profile, out)?,
                }
            }
        }
    }
    if args.raw {
        raw::print(tables, out)?;
    }
    if args.is_long() { writeln!(out) } else { Ok(()) }
}

/// Prints a profile in one line.
fn print_outline(
    tables: EncodedTables<'_>,
    profile: EncodedProfile<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let summary = ProfileSummary::new(tables, profile);
    let (name, samples) = (&summary.measure.name, summary.samples);
    let amount = large_amount(summary.amount, &summary.measure.unit);
    let start = time::utc_seconds(summary.header.time_unix_nano);
    let length = time::seconds(summary.header.duration_nano);
    writeln!(out, "  {name}: {amount} in {samples} samples, from {start} for {length}")
}

fn print_inline(tables: EncodedTables<'_>, attributes: Vec<KeyValue>, out: &mut dyn Write) -> io::Result<()> {
    for attribute in &attributes {
        let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
        print_attribute(tables, (tables.key(attribute), value), "  ", out)?;
    }
    Ok(())
}

fn print_attribute(
    tables: EncodedTables<'_>,
    (key, value): (&str, Option<&Value>),
    indent: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{indent}{key} = {}", value::text(tables, value))
}

fn print_profile(
    tables: EncodedTables<'_>,
    index: usize,
    profile: EncodedProfile<'_>,
    all: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let summary = ProfileSummary::new(tables, profile);
    let header = &summary.header;
    writeln!(out, "profile {index}: {}, period {}", summary.kind, header.period)?;
    let (start, length) = (time::utc(header.time_unix_nano), time::seconds(header.duration_nano));
    writeln!(out, "  from {start} for {length}")?;
    writeln!(out, "  {} samples, total {}", summary.samples, summary.total)?;
    if !header.profile_id.is_empty() {
        writeln!(out, "  id {}", value::hexadecimal(&header.profile_id))?;
    }
    if !profile.payload().is_empty() {
        let (bytes, format) = (profile.payload().len(), &header.original_payload_format);
        writeln!(out, "  original payload of {bytes} bytes, {format}")?;
    }
    for (key, value) in tables.attributes(&header.attribute_indices) {
        print_attribute(tables, (key, value.as_ref()), "  ", out)?;
    }
    if header.dropped_attributes_count > 0 {
        writeln!(out, "  {} attributes dropped", header.dropped_attributes_count)?;
    }
    if all {
        let mut shown = LongStacks::new();
        for (index, sample) in profile.samples().enumerate() {
            print_sample(tables, index, &SampleView::new(tables, index, sample, &mut shown), out)?;
        }
    }
    Ok(())
}

fn print_sample(
    tables: EncodedTables<'_>,
    index: usize,
    view: &SampleView<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "  sample {index}: {}", view.total)?;
    for (key, value) in tables.attributes(&view.sample.attribute_indices) {
        print_attribute(tables, (key, value.as_ref()), "    ", out)?;
    }
    if let Some(link) = &view.link {
        writeln!(out, "    {}", span_text(link))?;
    }
    for (position, &at) in view.sample.timestamps_unix_nano.iter().enumerate() {
        match view.sample.values.get(position) {
            Some(value) => writeln!(out, "    {value} at {}", time::utc(at))?,
            None => writeln!(out, "    at {}", time::utc(at))?,
        }
    }
    match &view.frames {
        ShownFrames::All(frames) => frames.iter().try_for_each(|frame| writeln!(out, "      {frame}")),
        ShownFrames::OfSample(first) => writeln!(out, "      the frames of sample {first}"),
    }
}

/// Prints the labels of a stack's samples, a line for each of the sets with the highest sums.
fn print_labels(stack: &StackSums, unit: &str, sums: &Sums<'_>, out: &mut dyn Write) -> io::Result<()> {
    if let [(one, _)] = stack.labels[..] {
        return match &*sums.labels(one).text {
            "" => Ok(()),
            text => writeln!(out, "    with {text}"),
        };
    }
    let amount = |sum: Sum| large_amount(sum.amount, unit);
    let shown = stack.labels.iter().take(SHOWN_LABELS);
    for &(set, sum) in shown.clone() {
        let sum = amount(sum);
        match &*sums.labels(set).text {
            "" => writeln!(out, "    {sum} without labels")?,
            text => writeln!(out, "    {sum} with {text}")?,
        }
    }
    let rest = amount(stack.sum_without(SHOWN_LABELS));
    match stack.label_set_count() - shown.len() {
        0 => Ok(()),
        1 => writeln!(out, "    {rest} with another set of labels"),
        others => writeln!(out, "    {rest} with {others} other sets of labels"),
    }
}

/// Prints the stacks of each type with the highest sums, at most `most` of them.
pub(super) fn print_stacks(sums: &Sums<'_>, most: usize, out: &mut dyn Write) -> io::Result<()> {
    for top in sums.kinds() {
        let ((stacks, all), unit) = (sums.stacks(top, most), &*top.measure.unit);
        let (shown, total) = (stacks.len(), large_amount(top.total.amount, unit));
        writeln!(out, "top {shown} of {all} stacks: {}, {total}", top.measure.name)?;
        for stack in stacks {
            let (amount, share) = (large_amount(stack.total.amount, unit), stack.total.percent_of(top.total));
            writeln!(out, "{amount:>12} {share:>6.2} %")?;
            for frame in sums.frames(stack.node) {
                writeln!(out, "      {frame}")?;
            }
            print_labels(&stack, unit, sums, out)?;
        }
        writeln!(out)?;
    }
    Ok(())
}
