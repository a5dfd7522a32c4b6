//! The tree of calls as text: each function with the functions that it calls, or that call it.

use std::io::{self, Write};

use otlpprof_report::frame_table::FrameTable;

use super::amount::{amount, percent};
use super::calls::{Call, Calls};
use super::fitted::{fitted, width};
use super::style::Style;
use crate::terminal::Shown;

/// The most levels that indent a call. Deeper calls begin with their level, so that the output grows with the
/// number of calls alone.
const MOST_INDENTED: usize = 64;
/// The columns before a call.
const BEFORE_CALL: usize = 33;
/// The fewest columns of a call on a terminal, however narrow and deep.
const LEAST_COLUMNS: usize = 24;

/// The options of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeOptions<'t> {
    /// The unit of the values.
    pub(super) unit: &'t str,
    /// The share, in percent of the whole, below which calls are folded.
    pub(super) least_percent: f64,
    /// The total of which shares are shown.
    pub(super) whole: i64,
    /// Whether callers are below the functions that they call.
    pub(super) is_inverted: bool,
    pub(super) style: Style,
}

/// Writes the calls. On a terminal calls without another one beside them share a line.
pub(super) fn print(
    calls: &Calls,
    frames: &FrameTable,
    options: TreeOptions<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let own_heading = if options.is_inverted { "ENTRY" } else { "SELF" };
    writeln!(out, "{:>10} {:>7} {own_heading:>10}  CALLS", "TOTAL", "SHARE")?;
    // By depth: the level at which the last call of that depth is shown.
    let mut levels: Vec<usize> = Vec::new();
    let mut left = &calls.shown[..];
    while let Some((first, _)) = left.split_first() {
        let length = if options.style.columns().is_some() { chain_length(left) } else { 1 };
        let (chain, rest) = left.split_at(length);
        left = rest;
        levels.truncate(first.depth);
        let level = levels.last().map_or(0, |above| above + 1);
        levels.resize(first.depth + length, level);
        print_chain(chain, level, frames, options, out)?;
    }
    print_rest(calls, options, out)
}

/// The number of calls, from the first one on, each of which has only the next one below it, and no value of
/// its own.
fn chain_length(calls: &[Call]) -> usize {
    let is_only = |pair: &[Call; 2]| pair[1].depth == pair[0].depth + 1 && pair[1].total == pair[0].total;
    1 + calls.array_windows().take_while(|pair| is_only(pair)).count()
}

/// Writes one line.
fn print_chain(
    chain: &[Call],
    level: usize,
    frames: &FrameTable,
    options: TreeOptions<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    // SANITY: a chain has a call.
    let Some(&Call { total, own, .. }) = chain.last() else { return Ok(()) };
    let (share, own) = (percent(total, options.whole), amount(own, options.unit));
    write!(out, "{:>10} {share:>5.1} % {own:>10}  ", amount(total, options.unit))?;
    options.style.faint(out)?;
    write!(out, "{}", "│ ".repeat(level.min(MOST_INDENTED)))?;
    options.style.plain(out)?;
    let deep = if level > MOST_INDENTED { format!("{level}: ") } else { String::new() };
    let name = |call: &Call| Shown(frames.get(call.frame)).to_string();
    let Some(columns) = options.style.columns() else {
        return writeln!(out, "{deep}{}", frames.get(chain[0].frame));
    };
    let used = BEFORE_CALL + 2 * level.min(MOST_INDENTED) + deep.len();
    let columns = columns.saturating_sub(used).max(LEAST_COLUMNS);
    let arrow = if options.is_inverted { " ← " } else { " → " };
    let mut text = chain.iter().map(name).collect::<Vec<_>>().join(arrow);
    if let [first, between @ .., last] = chain
        && width(&text) > columns
    {
        let between = match between.len() {
            0 => arrow.to_owned(),
            1 => format!("{arrow}(1 call){arrow}"),
            calls => format!("{arrow}({calls} calls){arrow}"),
        };
        // Each name has half of the room, or what the other one leaves.
        let room = columns.saturating_sub(width(&between));
        let [first, last] = [first, last].map(name);
        let of_first = (room / 2).max(room.saturating_sub(width(&last)));
        let first = fitted(&first, of_first);
        let last = fitted(&last, room.saturating_sub(width(&first)));
        text = format!("{first}{between}{last}");
    }
    writeln!(out, "{deep}{}", fitted(&text, columns))
}

/// Writes lines about the calls that are not shown.
fn print_rest(calls: &Calls, options: TreeOptions<'_>, out: &mut dyn Write) -> io::Result<()> {
    let count = |number: usize| match number {
        1 => "1 call".to_owned(),
        number => format!("{} calls", amount(number as i64, "count")),
    };
    if calls.folded > 0 {
        let least = options.least_percent;
        writeln!(out, "{} below {least} % folded: --least 0 shows all", count(calls.folded))?;
    }
    if calls.elided > 0 {
        let levels = calls.levels;
        writeln!(out, "{} in deeper levels elided: --depth {levels} shows all", count(calls.elided))?;
    }
    Ok(())
}
