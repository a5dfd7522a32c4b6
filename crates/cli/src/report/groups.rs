//! The groups of a report, in their order.

use std::cmp::Reverse;

use otlpprof_report::collect::{Collected, SelfValues, total};

/// The groups, the one with the highest total first.
pub(super) fn by_total<'c>(collected: &'c Collected<'_>) -> Vec<(&'c str, SelfValues)> {
    let mut groups: Vec<_> = collected.groups().into_iter().collect();
    groups.sort_by_cached_key(|(name, own)| (Reverse(total(own)), *name));
    groups
}
