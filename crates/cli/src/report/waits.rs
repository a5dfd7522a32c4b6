//! The waits of threads below the lines above a report, by state and by what is waited for.

use std::io::{self, Write};

use otlpprof_report::waits::{Awaited, Wait, Waits};
use serde_json::{Value, json};

use super::amount::{amount, percent};
use super::head::Head;
use super::kinds;
use super::style::Style;
use super::table::print_rest;

/// The columns before the thing that is waited for.
const BEFORE_AWAITED: usize = 30;

/// Writes the waits with the highest sums, at most `most`, and an empty line. Writes nothing if no thread
/// waits.
pub(super) fn print(head: Head<'_>, most: usize, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let Head { unit, whole, waits: Some(waits), .. } = head else { return Ok(()) };
    let columns = |value: i64| format!("{:>10} {:>5.1} %", amount(value, unit), percent(value, whole));
    writeln!(out, "waits: {:.1} % of {}", percent(waits.total, whole), amount(whole, unit))?;
    let (shown, rest) = split(waits, most);
    for Wait { state, awaited, value } in shown {
        match awaited.as_ref().map(in_words) {
            None => writeln!(out, "{}  {state}", columns(*value))?,
            Some(text) => {
                let text = style.name_at_end(text, BEFORE_AWAITED);
                writeln!(out, "{}  {state:8}  {text}", columns(*value))?;
            }
        }
    }
    if !rest.is_empty() {
        write!(out, "{}  ", columns(sum(rest)))?;
        print_rest(waits.rows.len(), most, out)?;
    }
    writeln!(out)
}

/// The waits as JSON, at most `most` rows.
pub(super) fn json(waits: &Waits, most: usize) -> Value {
    let (shown, rest) = split(waits, most);
    let rows = shown.iter().map(|Wait { state, awaited, value }| {
        let (operation, caller) = match awaited {
            None => (None, None),
            Some(Awaited::Operation { name, caller }) => (Some(&**name), caller.as_deref()),
            Some(Awaited::WorkOfVm(kind)) => (Some(kinds::work(*kind)), None),
        };
        json!({ "state": state, "operation": operation, "in": caller, "total": value })
    });
    json!({
        "total": waits.total, "rows": rows.collect::<Value>(),
        "others": { "count": rest.len(), "total": sum(rest) },
    })
}

/// The waits that are shown, and the others.
fn split(waits: &Waits, most: usize) -> (&[Wait], &[Wait]) {
    waits.rows.split_at(most.min(waits.rows.len()))
}

fn sum(waits: &[Wait]) -> i64 {
    waits.iter().fold(0, |sum, wait| sum.saturating_add(wait.value))
}

fn in_words(awaited: &Awaited) -> String {
    match awaited {
        Awaited::Operation { name, caller: None } => name.clone(),
        Awaited::Operation { name, caller: Some(caller) } => format!("{name} in {caller}"),
        Awaited::WorkOfVm(kind) => kinds::work(*kind).to_owned(),
    }
}
