//! The attributes of samples, profiles and resources, each value with its sum.

use std::io::{self, Write};

use otlpprof_report::attribute_sums::{AttributeSum, AttributeSums, Others};

use super::amount::{amount, percent};
use super::head::{self, Head};

/// The values of an attribute that are shown.
pub(super) struct Shown<'s> {
    pub(super) values: &'s [(String, i64)],
    /// The other values.
    pub(super) others: Others,
}

impl<'s> Shown<'s> {
    /// At most `most` values.
    pub(super) fn of(label: &'s AttributeSum, most: usize) -> Self {
        let (values, rest) = label.values.split_at(most.min(label.values.len()));
        let forgotten = label.others.unwrap_or(Others { values: 0, is_least: false, total: 0 });
        let of_rest = rest.iter().fold(0_i64, |sum, (_, value)| sum.saturating_add(*value));
        let others = Others {
            values: forgotten.values + rest.len(),
            total: forgotten.total.saturating_add(of_rest),
            ..forgotten
        };
        Self { values, others }
    }
}

/// Writes the attributes, at most `most` values of each.
pub(super) fn print(
    head: Head<'_>,
    sums: AttributeSums<'_>,
    most: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (has_counters, has_more_keys) = (sums.has_counters, sums.has_more_keys);
    let labels = sums.into_attributes();
    head::print(head, out)?;
    let Head { unit, whole, .. } = head;
    let columns = |value: i64| format!("{:>10} {:>5.1} %", amount(value, unit), percent(value, whole));
    for label in &labels {
        writeln!(out, "{}  {} (of the {})", columns(label.total), label.key, label.place.name())?;
        let Shown { values, others } = Shown::of(label, most);
        for (value, total) in values {
            let value = if value.is_empty() { "(no text)" } else { value };
            writeln!(out, "{}    {value}", columns(*total))?;
        }
        if others.values > 0 {
            let at_least = if others.is_least { "at least " } else { "" };
            let remedy = match label.values.len() {
                kept if kept > values.len() => format!("; --top {kept} shows more"),
                _ => String::new(),
            };
            let noun = if others.values == 1 { "value" } else { "values" };
            let count = others.values;
            writeln!(out, "{}    {at_least}{count} other {noun}{remedy}", columns(others.total))?;
        }
    }
    if labels.is_empty() {
        writeln!(out, "the samples have no attributes")?;
    }
    if has_more_keys {
        writeln!(out, "there are more keys than these")?;
    }
    if has_counters {
        writeln!(out, "the profiles have counters too; `otlpprof print --counters` shows them")?;
    }
    Ok(())
}
