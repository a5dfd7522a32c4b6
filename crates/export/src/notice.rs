//! Log lines that appear once, however often their cause recurs.

use std::sync::atomic::{AtomicU64, Ordering};

/// Remembers which kinds of lines were logged. A kind is a number below 64.
#[derive(Debug, Default)]
pub struct Notices(AtomicU64);

impl Notices {
    /// Logs a warning if no line of this kind was logged before, and a line at debug level otherwise.
    pub fn warn(&self, kind: u32, line: &str) {
        if self.first(kind) {
            log::warn!("{line} (logged once; further cases are only counted)");
        } else {
            log::debug!("{line}");
        }
    }

    fn first(&self, kind: u32) -> bool {
        self.0.fetch_or(1 << kind, Ordering::Relaxed) & 1 << kind == 0
    }
}

/// A text of foreign origin, made fit for a log line: no control characters, at most 200 characters.
pub(super) fn printable(text: &str) -> String {
    const LIMIT: usize = 200;
    let mut shown: String =
        text.trim().chars().take(LIMIT).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.trim().chars().nth(LIMIT).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_notice_is_first_once() {
        let notices = Notices::default();
        assert_eq!([0, 1, 0, 63, 63].map(|kind| notices.first(kind)), [true, true, false, true, false]);
    }

    #[test]
    fn foreign_text_stays_on_one_short_line() {
        assert_eq!(printable(" a\nb\x1b[31mc "), "a b [31mc");
        assert_eq!(printable(&"é".repeat(201)), "é".repeat(200) + "…");
        assert_eq!(printable(&"é".repeat(200)), "é".repeat(200));
    }
}
