//! The table of the functions with the highest sums.

use std::io::{self, Write};

use otlpprof_report::call_tree::CallTree;
use otlpprof_report::collect::SelfValues;
use otlpprof_report::frame_table::{FrameKind, FrameTable};
use otlpprof_report::function_sums::{SortBy, function_sums, sorted};

use super::amount::{amount, percent};
use super::style::Style;

/// The columns before a function.
const BEFORE_FUNCTION: usize = 48;

/// The options of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableOptions<'t> {
    /// The unit of the values.
    pub(super) unit: &'t str,
    /// The order.
    pub(super) sort_by: SortBy,
    /// The most lines.
    pub(super) most: usize,
    /// The total of which shares are shown.
    pub(super) whole: i64,
    pub(super) style: Style,
}

/// Writes the table.
pub(super) fn print(
    tree: &CallTree,
    frames: &FrameTable,
    own: &SelfValues,
    options: TableOptions<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let TableOptions { unit, sort_by, most, whole, style } = options;
    let sums = function_sums(tree, frames.len(), own.iter().map(|(&node, &value)| (node, value)));
    let sorted = sorted(&sums, sort_by);
    let shown = &sorted[..most.min(sorted.len())];
    writeln!(out, "{:>18}  {:>18}  {:6}  FUNCTION", "SELF", "TOTAL", "CODE")?;
    for (frame, sum) in shown {
        let columns = [sum.own, sum.total]
            .map(|value| format!("{:>10} {:>5.1} %", amount(value, unit), percent(value, whole)));
        let entry = frames.get(*frame);
        write!(out, "{}  {}  ", columns[0], columns[1])?;
        style.kind(out, entry.kind)?;
        write!(out, "{:6}", kind_name(entry.kind))?;
        style.plain(out)?;
        writeln!(out, "  {}", style.name_at_end(entry, BEFORE_FUNCTION))?;
    }
    print_rest(sorted.len(), most, out)
}

/// Writes a line about the rows of a table beyond the most that are shown.
pub(crate) fn print_rest(rows: usize, most: usize, out: &mut dyn Write) -> io::Result<()> {
    match rows.checked_sub(most) {
        None | Some(0) => Ok(()),
        Some(rest) => writeln!(out, "and {rest} more; --top {rows} shows them"),
    }
}

/// The name of a kind of code.
pub(crate) fn kind_name(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Java => "Java",
        FrameKind::Native => "native",
        FrameKind::Kernel => "kernel",
        FrameKind::Stub => "stub",
        FrameKind::Marker => "",
        FrameKind::Other(language) => language,
    }
}
