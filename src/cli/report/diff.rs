//! The change of each function's sums between two sets of profiles.

use std::cmp::Reverse;
use std::io::{self, Write};

use super::amount::{amount, change, percent};
use crate::report::call_tree::CallTree;
use crate::report::collect::SelfValues;
use crate::report::frame_table::FrameTable;
use crate::report::function_sums::{FunctionSum, SortBy, function_sums};

/// The options of a comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiffOptions<'d> {
    /// The unit of the values.
    pub(super) unit: &'d str,
    /// The sum whose change decides the order.
    pub(super) sort_by: SortBy,
    /// The most lines.
    pub(super) most: usize,
}

/// Writes the functions whose shares have changed most.
pub(super) fn print(
    tree: &CallTree,
    frames: &FrameTable,
    [base, new]: [&SelfValues; 2],
    options: DiffOptions<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let DiffOptions { unit, sort_by, most } = options;
    let wholes = [base, new].map(|own| own.values().fold(0_i64, |sum, &value| sum.saturating_add(value)));
    let sums = [base, new]
        .map(|own| function_sums(tree, frames.len(), own.iter().map(|(&node, &value)| (node, value))));
    writeln!(out, "base {}, new {}", amount(wholes[0], unit), amount(wholes[1], unit))?;
    let mut changed: Vec<_> = (0..).zip(sums[0].iter().zip(&sums[1])).collect();
    changed.retain(|(_, (base, new))| base != new);
    let share = |sum: &FunctionSum, of: usize| {
        let value = if sort_by == SortBy::Own { sum.own } else { sum.total };
        percent(value, wholes[of])
    };
    let weight = |base: &FunctionSum, new: &FunctionSum| (share(new, 1) - share(base, 0)).abs();
    // Shares are finite, so that their order is total. Thousandths of a percent decide, then the number.
    changed.sort_by_key(|&(frame, (base, new))| (Reverse((weight(base, new) * 1_000.0) as u64), frame));
    writeln!(out, "{:>22}  {:>22}  FUNCTION", "SELF", "TOTAL")?;
    for &(frame, (base, new)) in changed.iter().take(most) {
        let column = |base: i64, new: i64| {
            let points = percent(new, wholes[1]) - percent(base, wholes[0]);
            format!("{:>12} {points:>+7.1} %", change(new.saturating_sub(base), unit))
        };
        let (own, total) = (column(base.own, new.own), column(base.total, new.total));
        writeln!(out, "{own:>22}  {total:>22}  {}", frames.get(frame))?;
    }
    if changed.len() > most {
        writeln!(out, "and {} more; --top {} shows them", changed.len() - most, changed.len())?;
    }
    Ok(())
}
