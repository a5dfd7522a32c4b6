//! The conditions of a selection: in words, and compared with the attributes that exist.

use std::io::Write as _;

use anyhow::bail;
use otlpprof_report::known_attributes::{Missing, WantedAttribute, compare};
use otlpprof_report::selection::Selection;

use super::inputs::ProfileInputs;
use crate::print::time;
use crate::terminal;

const SECOND_NS: u64 = 1_000_000_000;

/// An option that names an attribute.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    /// The option as it was given.
    pub(crate) option: String,
    /// The attribute's key.
    pub(crate) key: String,
    /// The attribute's value; `None` if any value will do.
    pub(crate) value: Option<String>,
}

/// Fails if no sample, profile or resource of the files has the attribute of a condition. Reads the files.
///
/// # Errors
/// They name the option, and the keys or values that exist, those first that are spelt nearly as the missing
/// one.
pub(crate) fn check_exist(all: &[&ProfileInputs], conditions: &[Condition]) -> anyhow::Result<()> {
    if conditions.is_empty() {
        return Ok(());
    }
    let wanted =
        conditions.iter().map(|condition| WantedAttribute::new(&condition.key, condition.value.as_deref()));
    let mut wanted: Vec<_> = wanted.collect();
    for inputs in all {
        inputs.each_message(|message| compare(&message, &mut wanted))?;
    }
    for (Condition { option, key, .. }, wanted) in conditions.iter().zip(&wanted) {
        match wanted.missing() {
            None => {}
            Some(Missing::Key(keys)) => {
                bail!("{option}: no sample has the attribute {key}; the files have {}", keys.existing());
            }
            Some(Missing::Value(values)) => {
                bail!("{option}: no sample has this value of {key}; the files have {}", values.existing());
            }
        }
    }
    Ok(())
}

/// Checks the conditions of a selection that has left no sample. An empty result alone would not tell
/// whether an option has a mistake: writes a line to standard error if the attributes exist.
///
/// # Errors
/// If an attribute of a condition does not exist in the files.
pub(crate) fn check_selected(
    inputs: &ProfileInputs,
    selected_samples: u64,
    conditions: &[Condition],
) -> anyhow::Result<()> {
    let all: u64 = inputs.survey.measures.values().sum();
    if selected_samples > 0 || all == 0 {
        return Ok(());
    }
    check_exist(&[inputs], conditions)?;
    let during = inputs
        .survey
        .times
        .map(|(first, last)| format!(" from {} to {}", time::utc_seconds(first), time::utc_seconds(last)));
    let during = during.unwrap_or_default();
    Ok(writeln!(terminal::stderr(), "otlpprof: no sample is selected of the {all} in the files{during}")?)
}

/// The conditions of a selection in words; none if everything is selected.
pub(crate) fn in_words(selection: &Selection) -> Vec<String> {
    let attributes = selection.attributes.iter().map(|(key, value)| format!("{key}={value}"));
    let frames = selection.frames.iter().map(|frame| format!("with {frame}"));
    let without = selection.without.iter().map(|frame| format!("without {frame}"));
    let trace = selection.trace.map(|trace| format!("trace {:032x}", u128::from_be_bytes(trace)));
    let window = selection.window;
    let from = (window.from_ns > 0).then(|| format!("from {}", time_of(window.from_ns)));
    let to = (window.to_ns < u64::MAX).then(|| match window.to_ns % SECOND_NS {
        // A moment that was chosen is in the window.
        1 => format!("up to {}", time_of(window.to_ns - 1)),
        _ => format!("before {}", time_of(window.to_ns)),
    });
    attributes.chain(frames).chain(without).chain(trace).chain(from).chain(to).collect()
}

fn time_of(unix_ns: u64) -> String {
    match unix_ns % SECOND_NS {
        0 => time::utc_seconds(unix_ns),
        _ => time::utc(unix_ns),
    }
}
