//! The change of each function's sums between two sets of profiles.

use std::io::{self, Write};

use otlpprof_report::call_tree::CallTree;
use otlpprof_report::collect::{SelfValues, total};
use otlpprof_report::frame_table::{FrameId, FrameTable};
use otlpprof_report::function_sums::{FunctionSum, SortBy, function_sums};
use otlpprof_report::sides::Comparison;

use super::amount::{amount, change, percent, rate, rate_change};
use super::style::Style;
use super::table::print_rest;

/// The columns before a function.
const BEFORE_FUNCTION: usize = 58;

/// One side of a comparison.
#[derive(Debug)]
pub(super) struct Side {
    /// The self values.
    pub(super) own: SelfValues,
    /// The total without a selection.
    pub(super) total_of_all: i64,
    /// The time that the profiles cover, in ns.
    pub(super) profiled_ns: u64,
    /// The sum of idle threads that are left out.
    pub(super) idle: i64,
}

/// The options of a comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiffOptions<'d> {
    /// The unit of the values.
    pub(super) unit: &'d str,
    /// The sum whose change decides the order.
    pub(super) sort_by: SortBy,
    /// The way in which values are compared.
    pub(super) comparison: Comparison,
    /// The most lines.
    pub(super) most: usize,
}

/// The functions whose sums differ between the base and the new side.
#[derive(Debug)]
pub(super) struct Changes {
    /// The total of each side.
    pub(super) wholes: [i64; 2],
    /// The total of each side without a selection.
    pub(super) totals_of_all: [i64; 2],
    /// The time that the profiles of each side cover, in ns.
    pub(super) profiled_ns: [u64; 2],
    /// The sum of idle threads that are left out of each side.
    pub(super) idle: [i64; 2],
    /// Each function with its sums on both sides, the greatest change first.
    pub(super) functions: Vec<(FrameId, [FunctionSum; 2])>,
}

impl Changes {
    /// Compares two sides.
    pub(super) fn between(
        tree: &CallTree,
        frames: &FrameTable,
        [base, new]: [&Side; 2],
        options: DiffOptions<'_>,
    ) -> Self {
        let sides = [base, new];
        let [of_base, of_new] = sides.map(|side| {
            function_sums(tree, frames.len(), side.own.iter().map(|(&node, &value)| (node, value)))
        });
        let mut changes = Self {
            wholes: sides.map(|side| total(&side.own)),
            totals_of_all: sides.map(|side| side.total_of_all),
            profiled_ns: sides.map(|side| side.profiled_ns),
            idle: sides.map(|side| side.idle),
            functions: Vec::new(),
        };
        let sums = of_base.into_iter().zip(of_new).map(|(base, new)| [base, new]);
        let mut weighed: Vec<_> = (0..)
            .zip(sums)
            .map(|(frame, sums)| (changes.weight(sums, options), frame, sums))
            .filter(|(weight, _, [base, new])| *weight != 0.0 || base != new)
            .collect();
        weighed.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        changes.functions = weighed.into_iter().map(|(_, frame, sums)| (frame, sums)).collect();
        changes
    }

    /// The size of a function's change, in the way of the comparison.
    fn weight(&self, [base, new]: [FunctionSum; 2], options: DiffOptions<'_>) -> f64 {
        let [base, new] = [base, new].map(|sum| match options.sort_by {
            SortBy::Own => sum.own,
            SortBy::Total => sum.total,
        });
        match options.comparison {
            // Smaller differences than thousandths of a percent come from rounding.
            Comparison::Share => (self.points(base, new).abs() * 1_000.0).round(),
            Comparison::PerSecond => self.rate_change(base, new).abs(),
            Comparison::Raw => new.abs_diff(base) as f64,
        }
    }

    /// The difference of the shares, in percent of the totals.
    fn points(&self, base: i64, new: i64) -> f64 {
        percent(new, self.wholes[1]) - percent(base, self.wholes[0])
    }

    /// The difference of the values per second.
    fn rate_change(&self, base: i64, new: i64) -> f64 {
        self.per_second(1, new) - self.per_second(0, base)
    }

    /// A value of a side per second.
    fn per_second(&self, side: usize, value: i64) -> f64 {
        value as f64 * 1e9 / self.profiled_ns[side] as f64
    }

    /// Writes the totals of both sides in one line.
    pub(super) fn print_totals(&self, options: DiffOptions<'_>, out: &mut dyn Write) -> io::Result<()> {
        let whole = |side: usize| match options.comparison {
            Comparison::PerSecond => rate(self.per_second(side, self.wholes[side]), options.unit),
            Comparison::Share | Comparison::Raw => amount(self.wholes[side], options.unit),
        };
        writeln!(out, "base {}, new {}", whole(0), whole(1))
    }

    /// The share of each side that is selected, in words.
    pub(super) fn selected_shares(&self) -> String {
        let [base, new] = [0, 1].map(|side| percent(self.wholes[side], self.totals_of_all[side]));
        format!("{base:.1} % of base, {new:.1} % of new")
    }

    /// Writes the functions whose values have changed most.
    pub(super) fn print_functions(
        &self,
        frames: &FrameTable,
        options: DiffOptions<'_>,
        style: Style,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let DiffOptions { unit, most, comparison, .. } = options;
        let compared = match comparison {
            Comparison::PerSecond => "the values per second",
            Comparison::Share | Comparison::Raw => "the values",
        };
        if self.functions.is_empty() {
            return writeln!(out, "no function has changed");
        }
        let shares = "of their shares of the totals in points of percent";
        writeln!(out, "the change from base to new: of {compared}, and {shares}")?;
        writeln!(out)?;
        writeln!(out, "{:>27}  {:>27}  FUNCTION", "SELF", "TOTAL")?;
        let column = |base: i64, new: i64| {
            let value = match comparison {
                Comparison::PerSecond => rate_change(self.rate_change(base, new), unit),
                Comparison::Share | Comparison::Raw => change(new.saturating_sub(base), unit),
            };
            format!("{value:>12} {:>7} points", points(self.points(base, new)))
        };
        for &(frame, [base, new]) in self.functions.iter().take(most) {
            let (own, total) = (column(base.own, new.own), column(base.total, new.total));
            let name = style.name_at_end(frames.get(frame), BEFORE_FUNCTION);
            writeln!(out, "{own:>27}  {total:>27}  {name}")?;
        }
        print_rest(self.functions.len(), most, out)
    }
}

/// Points of percent with their sign. Differences that would be shown as 0 have none.
fn points(points: f64) -> String {
    match format!("{points:+.1}") {
        zero if zero == "+0.0" || zero == "-0.0" => "0.0".to_owned(),
        text => text,
    }
}

#[cfg(test)]
mod tests {
    use super::points;

    #[test]
    fn zero_points_have_no_sign() {
        assert_eq!([0.0, -0.0, 0.04, -0.04].map(points), ["0.0"; 4]);
        assert_eq!([0.06, -12.34].map(points), ["+0.1", "-12.3"]);
    }
}
