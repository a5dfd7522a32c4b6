//! The lines of the view as text, for the screen and for plain output.

use std::io::{self, Write};

use otlpprof_report::frame_table::FrameKind;
use otlpprof_report::function_sums::SortBy;
use otlpprof_report::measure::Measure;

use super::ranking::Ranking;
use super::recent::{Recent, Totals};
use super::view::View;
use crate::report::amount::{amount, percent};
use crate::report::{kind_name, kinds};
use crate::terminal::Shown;

pub(super) const FUNCTION_TITLES: [&str; 6] =
    ["      SELF", "      %", "     TOTAL", "      %", "CODE", "FUNCTION"];
pub(super) const THREAD_TITLES: [&str; 3] = ["     VALUE", "      %", "THREAD"];

/// The line before there are samples.
pub(super) const NO_SAMPLES: &str = "no samples yet";

/// A function.
#[derive(Debug)]
pub(super) struct FunctionLine {
    /// Self and total, each with its share.
    pub(super) columns: [String; 4],
    pub(super) kind: FrameKind,
    pub(super) kind_name: &'static str,
    pub(super) name: String,
}

/// A thread.
#[derive(Debug)]
pub(super) struct ThreadLine {
    /// The value and its share.
    pub(super) columns: [String; 2],
    pub(super) name: String,
}

/// The lines of the view. Names are not escaped.
#[derive(Debug)]
pub(super) struct Lines {
    /// The first line, escaped.
    pub(super) head: String,
    /// The shares of the kinds of code, if they are known.
    pub(super) kinds: Option<String>,
    /// The names of the measures, and whether each is the one that is shown.
    pub(super) types: Vec<(String, bool)>,
    pub(super) functions: Vec<FunctionLine>,
    pub(super) threads: Vec<ThreadLine>,
}

impl Lines {
    /// The lines of the view, with at most `most` functions and threads. `of` names the source.
    pub(super) fn new(of: &str, recent: &Recent<'_>, view: &View, most: usize) -> Self {
        let totals = view.frozen.as_ref().unwrap_or(&recent.totals);
        let measures = totals.measures();
        let measure = view.shown(&measures);
        let ranking = measure.map_or_else(Ranking::default, |measure| {
            Ranking::of(&recent.reader, &totals.of(measure), view.filter.as_ref(), view.sort_by)
        });
        let unit = measure.map_or("", |measure| &*measure.unit);
        let entry = |frame| recent.reader.frames.get(frame);
        let value = |value| format!("{:>10}", amount(value, unit));
        let share = |value| format!("{:>5.1} %", percent(value, ranking.whole));
        let functions = ranking.functions.iter().take(most).map(|&(frame, sum)| FunctionLine {
            columns: [value(sum.own), share(sum.own), value(sum.total), share(sum.total)],
            kind: entry(frame).kind,
            kind_name: kind_name(entry(frame).kind),
            name: entry(frame).name.to_string(),
        });
        let threads = ranking.threads.iter().take(most).map(|&(frame, sum)| ThreadLine {
            columns: [value(sum), share(sum)],
            name: entry(frame).name.to_string(),
        });
        let (functions, threads) = (functions.collect(), threads.collect());
        let types = measures.iter().map(|&other| (other.name.clone(), Some(other) == measure)).collect();
        let mut head = head(of, totals, view, measure, ranking.whole);
        if recent.reader.idle != 0 && measure.is_some_and(Measure::is_wall_clock) {
            head.push_str("  without idle VM and native threads (--idle)");
        }
        let kinds = ranking.kinds.and_then(|kinds| kinds::line(&kinds, ranking.whole));
        Self { head, kinds, types, functions, threads }
    }

    /// Writes the lines as tables.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", self.head)?;
        if self.types.is_empty() {
            writeln!(out, "{NO_SAMPLES}")?;
            return writeln!(out);
        }
        self.kinds.iter().try_for_each(|line| writeln!(out, "{line}"))?;
        let names: Vec<_> = self.types.iter().map(|(name, _)| &**name).collect();
        writeln!(out, "types: {}", names.join(" "))?;
        let [own, own_share, total, total_share, kind, name] = FUNCTION_TITLES;
        writeln!(out, "{own} {own_share} {total} {total_share} {kind:6} {name}")?;
        for FunctionLine { columns, kind_name, name, .. } in &self.functions {
            writeln!(out, "{} {kind_name:6} {name}", columns.join(" "))?;
        }
        writeln!(out, "{}", THREAD_TITLES.join(" "))?;
        for ThreadLine { columns, name } in &self.threads {
            writeln!(out, "{} {name}", columns.join(" "))?;
        }
        writeln!(out)
    }
}

/// The first line: the source, the total and the time, and the state of the view.
fn head(of: &str, totals: &Totals, view: &View, measure: Option<&Measure>, whole: i64) -> String {
    let unit = measure.map_or("", |measure| &*measure.unit);
    let seconds = totals.covered_ns as f64 / 1e9;
    let name = |service: &String| format!(" {}", Shown(service));
    let service = totals.service.as_ref().map(name).unwrap_or_default();
    let sort = match view.sort_by {
        SortBy::Own => "self",
        SortBy::Total => "total",
    };
    let filter = view.filter.as_ref().map(|filter| format!("  filter {}", filter.as_str()));
    let filter = Shown(filter.unwrap_or_default()).to_string();
    let missing = match (&view.measure, measure.is_some()) {
        (Some(name), false) => format!("  no samples of {}", Shown(name)),
        _ => String::new(),
    };
    let pause = if view.frozen.is_some() { "  PAUSED" } else { "" };
    format!("{of}{service}: {} in {seconds:.1} s  by {sort}{filter}{missing}{pause}", amount(whole, unit))
}

/// The end of a text that is longer than `room` characters, after a mark: the method's name is there.
pub(super) fn end_of(text: &str, room: usize) -> String {
    let count = text.chars().count();
    if count <= room {
        return text.to_owned();
    }
    let left_out = count - room.saturating_sub(1);
    format!("…{}", text.chars().skip(left_out).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_name_stays() {
        assert_eq!(end_of("a.b.C.run", 9), "a.b.C.run");
        assert_eq!(end_of("a.b.C.run", 6), "…C.run");
        assert_eq!(end_of("größe", 3), "…ße");
    }
}
