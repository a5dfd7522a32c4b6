//! The time that profiles cover.

use std::collections::HashMap;

use super::profile_context::ProfileContext;
use super::selected_resources::SelectedResources;
use super::selection::Window;

/// The profiled intervals: of each process and start, the length in ns. A profile in several messages covers
/// its interval once.
#[derive(Debug, Default)]
pub struct ProfiledTime(HashMap<(u64, u64), u64>);

impl ProfiledTime {
    /// Adds the interval of a profile, as far as its samples can be in the window.
    pub fn add(&mut self, profile: &ProfileContext<'_>, window: Window) {
        let length = self.0.entry((profile.process, profile.start_ns)).or_default();
        *length = (*length).max(profile.ns_in(window));
    }

    /// The lengths of all intervals, of each process, in ns.
    pub fn total_ns(&self) -> u64 {
        self.0.values().sum()
    }

    /// The lengths of all intervals of the selected processes, in ns.
    pub fn selected_ns(&self, of: &SelectedResources) -> u64 {
        self.of(of).map(|(_, length_ns)| length_ns).sum()
    }

    /// The first time of the selected processes in the window, in ns since 1970; `None` if no profile has a
    /// time.
    pub fn start_ns(&self, of: &SelectedResources, window: Window) -> Option<u64> {
        let first_ns = self.of(of).map(|(start_ns, _)| start_ns).filter(|&start_ns| start_ns != 0).min();
        first_ns.map(|first_ns| first_ns.max(window.from_ns))
    }

    /// The start and length of the intervals of the selected processes.
    fn of(&self, of: &SelectedResources) -> impl Iterator<Item = (u64, u64)> {
        let intervals = self.0.iter().filter(|((process, _), _)| of.has(*process));
        intervals.map(|(&(_, start_ns), &length_ns)| (start_ns, length_ns))
    }
}
