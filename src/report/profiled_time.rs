//! The time that profiles cover.

use std::collections::HashMap;

use super::sample_reader::ProfileContext;

/// The profiled intervals: of each process and start, the length in ns. A profile in several messages covers
/// its interval once.
#[derive(Debug, Default)]
pub struct ProfiledTime(HashMap<(u64, u64), u64>);

impl ProfiledTime {
    /// Adds the interval of a profile.
    pub fn add(&mut self, profile: &ProfileContext<'_>) {
        let length = self.0.entry((profile.process, profile.start_ns)).or_default();
        *length = (*length).max(profile.duration_ns);
    }

    /// The lengths of all intervals, of each process, in ns.
    pub fn total_ns(&self) -> u64 {
        self.0.values().sum()
    }
}
