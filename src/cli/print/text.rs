//! Messages and sums for people.

use std::io::{self, Write};
use std::path::Path;

use super::labels::span_text;
use super::summary::{ProfileSummary, SampleView};
use super::top::{SHOWN_LABELS, TopStack, Tops};
use super::{Args, raw, time, value};
use crate::otlp::Form;
use crate::otlp::lookup::Lookup;
use crate::otlp::read::Message;
use crate::otlp::wire::{KeyValue, Profile, Value};

pub(super) fn print_message(
    path: &Path,
    message: &Message,
    args: &Args,
    out: &mut dyn Write,
) -> io::Result<()> {
    let tables = Lookup::new(&message.data);
    let form = match message.form {
        Form::Plain => "protobuf",
        Form::LengthPrefixed => "length-prefixed protobuf",
        Form::Json => "JSON",
    };
    let (file, index, size, place) = (path.display(), message.index, message.size, message.place(0));
    writeln!(out, "{file}: message {index}: {size} bytes of {form} at {place}")?;
    let mut profiles = 0..;
    for resource in &message.data.resource_profiles {
        writeln!(out, "resource")?;
        let attributes = resource.resource.iter().flat_map(|resource| &resource.attributes);
        print_inline(tables, attributes, out)?;
        for scope in &resource.scope_profiles {
            let name = scope.scope.as_ref().map(|scope| format!("{} {}", scope.name, scope.version));
            writeln!(out, "scope {}", name.as_deref().unwrap_or("(none)").trim_end())?;
            print_inline(tables, scope.scope.iter().flat_map(|scope| &scope.attributes), out)?;
            for (profile, index) in scope.profiles.iter().zip(&mut profiles) {
                print_profile(tables, index, profile, args.all, out)?;
            }
        }
    }
    if args.raw {
        raw::print(tables, out)?;
    }
    writeln!(out)
}

fn print_inline<'a>(
    tables: Lookup<'a>,
    attributes: impl Iterator<Item = &'a KeyValue>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let attributes = attributes.map(|attribute| {
        let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
        (tables.key(attribute), value)
    });
    print_attributes(tables, attributes, "  ", out)
}

fn print_attributes<'a>(
    tables: Lookup<'a>,
    attributes: impl Iterator<Item = (&'a str, Option<&'a Value>)>,
    indent: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (key, value) in attributes {
        writeln!(out, "{indent}{key} = {}", value::text(tables, value))?;
    }
    Ok(())
}

fn print_profile(
    tables: Lookup<'_>,
    index: usize,
    profile: &Profile,
    all: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let summary = ProfileSummary::new(tables, profile);
    writeln!(out, "profile {index}: {}, period {}", summary.kind(), profile.period)?;
    let (start, length) = (time::utc(profile.time_unix_nano), time::seconds(profile.duration_nano));
    writeln!(out, "  from {start} for {length}")?;
    writeln!(out, "  {} samples, total {}", profile.samples.len(), summary.total)?;
    if !profile.profile_id.is_empty() {
        writeln!(out, "  id {}", value::hexadecimal(&profile.profile_id))?;
    }
    if !profile.original_payload.is_empty() {
        let (bytes, format) = (profile.original_payload.len(), &profile.original_payload_format);
        writeln!(out, "  original payload of {bytes} bytes, {format}")?;
    }
    print_attributes(tables, summary.attributes.iter().copied(), "  ", out)?;
    if profile.dropped_attributes_count > 0 {
        writeln!(out, "  {} attributes dropped", profile.dropped_attributes_count)?;
    }
    if all {
        for (index, sample) in profile.samples.iter().enumerate() {
            print_sample(tables, index, &SampleView::new(tables, sample), out)?;
        }
    }
    Ok(())
}

fn print_sample(
    tables: Lookup<'_>,
    index: usize,
    view: &SampleView<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "  sample {index}: {}", view.total)?;
    print_attributes(tables, view.attributes.iter().copied(), "    ", out)?;
    if let Some(link) = view.link {
        writeln!(out, "    {}", span_text(link))?;
    }
    for (position, &at) in view.sample.timestamps_unix_nano.iter().enumerate() {
        match view.sample.values.get(position) {
            Some(value) => writeln!(out, "    {value} at {}", time::utc(at))?,
            None => writeln!(out, "    at {}", time::utc(at))?,
        }
    }
    for frame in &view.frames {
        writeln!(out, "      {frame}")?;
    }
    Ok(())
}

/// What a stack's samples are labelled with, a line for each of the sets that have most of them.
fn print_labels(stack: &TopStack<'_>, tops: &Tops, out: &mut dyn Write) -> io::Result<()> {
    let labels = stack.labels(SHOWN_LABELS);
    if let [(one, _)] = labels[..] {
        return match &*tops.labels(one).text {
            "" => Ok(()),
            text => writeln!(out, "    with {text}"),
        };
    }
    let mut shown = 0;
    for &(set, sum) in &labels {
        shown += sum;
        match &*tops.labels(set).text {
            "" => writeln!(out, "    {sum} without labels")?,
            text => writeln!(out, "    {sum} with {text}")?,
        }
    }
    match stack.label_set_count() - labels.len() {
        0 => Ok(()),
        1 => writeln!(out, "    {} with another set of labels", stack.total - shown),
        others => writeln!(out, "    {} with {others} other sets of labels", stack.total - shown),
    }
}

pub(super) fn print_tops(tops: &Tops, args: &Args, out: &mut dyn Write) -> io::Result<()> {
    for (kind, top) in tops.kinds() {
        if args.top_stacks() > 0 {
            let stacks = top.stacks(args.top_stacks());
            writeln!(
                out,
                "top {} of {} stacks: {kind}, total {}",
                stacks.len(),
                top.stack_count(),
                top.total
            )?;
            for stack in stacks {
                writeln!(out, "{:>12} {:>6.2} %", stack.total, top.percent(stack.total))?;
                for frame in stack.frames {
                    writeln!(out, "      {frame}")?;
                }
                print_labels(&stack, tops, out)?;
            }
            writeln!(out)?;
        }
        if let Some(most) = args.top_frames {
            let frames = top.frames(most);
            writeln!(out, "top {} frames: {kind}, total {}", frames.len(), top.total)?;
            writeln!(out, "{:>12} {:>8} {:>12} {:>8}", "self", "", "total", "")?;
            for (frame, sums) in frames {
                let (own, total) = (top.percent(sums.own), top.percent(sums.total));
                writeln!(out, "{:>12} {own:>6.2} % {:>12} {total:>6.2} %  {frame}", sums.own, sums.total)?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}
