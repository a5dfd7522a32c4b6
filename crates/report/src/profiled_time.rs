//! The time that profiles cover.

use std::collections::HashMap;

use super::sample_reader::ProfileContext;
use super::selection::Window;

/// The profiled intervals: of each process and start, the length in ns. A profile in several messages covers
/// its interval once.
#[derive(Debug, Default)]
pub struct ProfiledTime(HashMap<(u64, u64), u64>);

impl ProfiledTime {
    /// Adds the interval of a profile, as far as its samples can be in the window: all of a profile that
    /// begins there, since samples without a time have the profile's start.
    pub fn add(&mut self, profile: &ProfileContext<'_>, window: Window) {
        let end_ns = profile.start_ns.saturating_add(profile.duration_ns).min(window.to_ns);
        let in_window_ns = match window.has(profile.start_ns) {
            true => profile.duration_ns,
            false => end_ns.saturating_sub(window.from_ns),
        };
        let length = self.0.entry((profile.process, profile.start_ns)).or_default();
        *length = (*length).max(in_window_ns);
    }

    /// The lengths of all intervals, of each process, in ns.
    pub fn total_ns(&self) -> u64 {
        self.0.values().sum()
    }
}
