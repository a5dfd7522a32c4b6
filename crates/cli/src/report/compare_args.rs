//! The options of a comparison of two sets of profiles, shared by all commands that compare.

use anyhow::bail;
use otlpprof_report::measure::Measure;
use otlpprof_report::sides::Comparison;

use super::inputs::ProfileInputs;

/// The way in which values are compared. Without an option, shares of each side's total are.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct CompareArgs {
    /// Compare values per second of profiled time instead of shares, for sets of different durations
    #[arg(long, conflicts_with = "raw")]
    per_second: bool,
    /// Compare values as they are instead of shares
    #[arg(long)]
    raw: bool,
}

impl CompareArgs {
    /// The way in which values are compared.
    pub(crate) fn comparison(self) -> Comparison {
        match self {
            Self { per_second: true, .. } => Comparison::PerSecond,
            Self { raw: true, .. } => Comparison::Raw,
            Self { per_second: false, raw: false } => Comparison::Share,
        }
    }

    /// The option that is given without a comparison; `None` if there is none.
    pub(crate) fn without_comparison(self) -> Option<&'static str> {
        match self.comparison() {
            Comparison::Share => None,
            Comparison::PerSecond => Some("--per-second"),
            Comparison::Raw => Some("--raw"),
        }
    }

    /// Returns an error if values per second are wanted and a side has none. `profiled_ns` has the time that
    /// the profiles of the base and the new side cover.
    pub(crate) fn check_times(self, profiled_ns: [u64; 2]) -> anyhow::Result<()> {
        if self.per_second
            && let Some(side) = profiled_ns.iter().position(|&ns| ns == 0)
        {
            let side = ["base", "new"][side];
            bail!("--per-second: the {side} side has no profiled time; compare shares, or use --raw");
        }
        Ok(())
    }
}

/// The line about a side without values. `has_values` is for the base and the new side, `idle` has the sums
/// of their idle threads that are left out.
///
/// # Errors
/// If neither side has a value.
pub(crate) fn empty_side(has_values: [bool; 2], idle: [i64; 2]) -> anyhow::Result<Option<&'static str>> {
    match has_values {
        [true, true] => Ok(None),
        [false, true] => Ok(Some("the base side has no value: everything is new")),
        [true, false] => Ok(Some("the new side has no value: everything is gone")),
        [false, false] if idle != [0, 0] => {
            bail!("neither side has a value to compare except values of idle VM and native threads (--idle)")
        }
        [false, false] => bail!("neither side has a value to compare, or none that the options select"),
    }
}

/// The measure of this name on the new side, or on the base side if only that one has it. Without a name the
/// measure that is shown of the new side. If there is none, the error names the measures of the new side.
pub(crate) fn measure_of_either<'i>(
    base: &'i ProfileInputs,
    new: &'i ProfileInputs,
    name: Option<&str>,
) -> anyhow::Result<&'i Measure> {
    match base.survey.measure(name) {
        Some(of_base) if new.survey.measure(name).is_none() => Ok(of_base),
        _ => new.measure(name),
    }
}
