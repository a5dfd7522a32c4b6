//! Collects the rows of one object's table.

use std::collections::HashMap;

use otlpprof_core::address::ElfVaddr;
use otlpprof_core::unwind_rule::UnwindRule;
use otlpprof_core::unwind_table::{NO_RULE, UnwindTable};

/// The distinct rules of an object.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<UnwindRule>,
    indices: HashMap<UnwindRule, u16, foldhash::fast::FixedState>,
    last: Option<(UnwindRule, u16)>,
}

impl RuleSet {
    /// The index of `rule`; [`NO_RULE`] if there are too many distinct rules (no compiler produces so many).
    pub fn index_of(&mut self, rule: UnwindRule) -> u16 {
        if let Some((last, index)) = self.last
            && last == rule
        {
            return index;
        }
        let next = u16::try_from(self.rules.len()).unwrap_or(NO_RULE);
        let index = self.indices.get(&rule).copied().unwrap_or(next);
        if index == next && next != NO_RULE {
            self.rules.push(rule);
            self.indices.insert(rule, index);
        }
        self.last = Some((rule, index));
        index
    }
}

/// The rows of one section, ascending, as offsets from a base. A row ends where the next begins.
#[derive(Debug)]
pub struct Rows {
    rows: Vec<(u32, u16)>,
    /// The end of the last row. Rows cannot be added below this offset.
    end: u32,
}

impl Rows {
    /// An empty collection with room for `expected` rows.
    pub fn with_capacity(expected: usize) -> Self {
        Self { rows: Vec::with_capacity(expected), end: 0 }
    }

    /// Adds `rule` for the offsets from `start` to `end`. Rules of earlier calls take precedence. Offsets
    /// that no call covers have no rule.
    pub fn push(&mut self, start: u32, end: u32, rule: u16) {
        let start = start.max(self.end);
        if start >= end {
            return;
        }
        if start > self.end {
            self.start_row(self.end, NO_RULE);
        }
        self.start_row(start, rule);
        self.end = end;
    }

    fn start_row(&mut self, start: u32, rule: u16) {
        if self.rows.last().map_or(NO_RULE, |row| row.1) != rule {
            self.rows.push((start, rule));
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Ends the last row.
    fn finished(mut self) -> Vec<(u32, u16)> {
        self.start_row(self.end, NO_RULE);
        self.rows
    }

    /// Merges two collections: these rows, and rows of `other` where these have no rule.
    pub fn filled_with(self, other: Self) -> Self {
        let end = self.end.max(other.end);
        let (ours, others) = (self.finished(), other.finished());
        let (mut ours, mut others) = (ours.into_iter().peekable(), others.into_iter().peekable());
        let (mut our_rule, mut other_rule) = (NO_RULE, NO_RULE);
        let mut merged = Self::with_capacity(ours.len() + others.len());
        while let Some(start) = [ours.peek(), others.peek()].into_iter().flatten().map(|row| row.0).min() {
            if let Some(row) = ours.next_if(|row| row.0 == start) {
                our_rule = row.1;
            }
            if let Some(row) = others.next_if(|row| row.0 == start) {
                other_rule = row.1;
            }
            merged.start_row(start, if our_rule == NO_RULE { other_rule } else { our_rule });
        }
        merged.end = end;
        merged
    }

    /// Converts these rows to a table.
    pub fn into_table(self, base: ElfVaddr, rules: RuleSet) -> UnwindTable {
        let rows = self.finished();
        let starts = rows.iter().map(|row| row.0).collect();
        let indices = rows.iter().map(|row| row.1).collect();
        // SANITY: rows ascend, and `rules` returned their indices.
        UnwindTable::new(base, starts, indices, rules.rules.into()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(ranges: &[(u32, u32, u16)]) -> Rows {
        let mut rows = Rows::with_capacity(0);
        for &(start, end, rule) in ranges {
            rows.push(start, end, rule);
        }
        rows
    }

    #[test]
    fn equal_neighbours_merge_and_gaps_have_no_rule() {
        let found =
            rows(&[(0, 4, 1), (4, 8, 1), (8, 10, 2), (12, 14, 2), (14, 14, 3), (14, 15, 4)]).finished();
        assert_eq!(found, [(0, 1), (8, 2), (10, NO_RULE), (12, 2), (14, 4), (15, NO_RULE)]);
    }

    #[test]
    fn the_first_of_overlapping_rows_wins() {
        let found = rows(&[(0, 10, 1), (5, 15, 2), (2, 8, 3)]).finished();
        assert_eq!(found, [(0, 1), (10, 2), (15, NO_RULE)]);
    }

    #[test]
    fn nothing_gives_no_rows() {
        assert_eq!(rows(&[]).finished(), []);
        assert_eq!(rows(&[(3, 3, 1)]).finished(), []);
    }

    proptest::proptest! {
        /// Rows are equivalent to a plain array with one rule per address.
        #[test]
        fn rows_agree_with_an_array(
            ours in proptest::collection::vec((0u32..60, 0u32..20, 0u16..3), 0..8),
            others in proptest::collection::vec((0u32..60, 0u32..20, 0u16..3), 0..8),
        ) {
            let ranges = |given: &[(u32, u32, u16)]| {
                let mut given: Vec<_> =
                    given.iter().map(|&(start, len, rule)| (start, start + len, rule)).collect();
                given.sort();
                given
            };
            let array = |ranges: &[(u32, u32, u16)]| {
                let (mut array, mut covered) = ([NO_RULE; 100], 0);
                for &(start, end, rule) in ranges {
                    for at in start.max(covered)..end {
                        array[at as usize] = rule;
                    }
                    covered = covered.max(end);
                }
                array
            };
            let (ours, others) = (ranges(&ours), ranges(&others));
            let (our_array, other_array) = (array(&ours), array(&others));
            let merged = rows(&ours).filled_with(rows(&others)).finished();
            for at in 0..100 {
                let expected = if our_array[at] == NO_RULE { other_array[at] } else { our_array[at] };
                let row = merged.partition_point(|row| row.0 as usize <= at);
                let found = row.checked_sub(1).map_or(NO_RULE, |row| merged[row].1);
                proptest::prop_assert_eq!(found, expected, "at {}", at);
            }
            proptest::prop_assert!(merged.is_sorted_by(|a, b| a.0 < b.0 && a.1 != b.1));
        }
    }
}
