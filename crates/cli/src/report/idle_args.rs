//! The options about idle threads of the VM and of native code, and the line about those that are left out.

use super::amount::{amount, percent};

/// The options about idle threads. The last one counts.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct IdleArgs {
    /// Show idle threads of the VM and of native code in wall-clock profiles
    #[arg(long, overrides_with = "no_idle")]
    idle: bool,
    /// Leave idle threads out [default, unless --thread or --where names a thread or its state]
    #[arg(long, overrides_with = "idle")]
    no_idle: bool,
}

impl IdleArgs {
    /// Shows idle threads if `idle` is set.
    pub(crate) fn of(idle: bool) -> Self {
        Self { idle, no_idle: false }
    }

    /// Whether idle threads are left out, which is the choice of a command (`by_default`) without an option.
    pub(super) fn leave_out(self, by_default: bool) -> bool {
        self.no_idle || (by_default && !self.idle)
    }
}

/// The beginning of the lines about idle threads that are left out. `show` is the option that shows them.
fn beginning(show: &str) -> String {
    format!("idle VM and native threads left out ({show} shows them)")
}

/// The line about idle threads that are left out; `None` if there are none. `idle` and `shown` are sums in
/// `unit`, `show` is the option that shows the threads.
pub(crate) fn line(idle: i64, shown: i64, unit: &str, show: &str) -> Option<String> {
    let all = idle.saturating_add(shown);
    let (share, all) = (percent(idle, all), amount(all, unit));
    (idle != 0).then(|| format!("{}: {share:.1} % of {all}", beginning(show)))
}

/// As [`line`], of the base and the new side of a comparison.
pub(crate) fn line_of_sides(idle: [i64; 2], shown: [i64; 2]) -> Option<String> {
    let [base, new] = [0, 1].map(|side| percent(idle[side], idle[side].saturating_add(shown[side])));
    (idle != [0, 0]).then(|| format!("{}: {base:.1} % of base, {new:.1} % of new", beginning("--idle")))
}
