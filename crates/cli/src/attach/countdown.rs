//! The time that is left of a recording, on a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A line on standard error that disappears with this value. There is none unless standard error is a
/// terminal.
pub(super) struct Countdown {
    line: ProgressBar,
}

impl Countdown {
    /// Begins a line.
    pub(super) fn begin() -> Self {
        let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
        let style = ProgressStyle::with_template("{msg}");
        line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Self { line }
    }

    /// Shows the time that is left, in whole seconds.
    pub(super) fn show(&self, left: Duration) {
        self.line.set_message(text(left));
    }
}

impl Drop for Countdown {
    fn drop(&mut self) {
        self.line.finish_and_clear();
    }
}

fn text(left: Duration) -> String {
    let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
    format!("{} left", humantime::format_duration(Duration::from_secs(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_begun_second_is_left() {
        assert_eq!(text(Duration::from_millis(29_001)), "30s left");
        assert_eq!(text(Duration::from_secs(61)), "1m 1s left");
        assert_eq!(text(Duration::from_millis(1)), "1s left");
    }
}
