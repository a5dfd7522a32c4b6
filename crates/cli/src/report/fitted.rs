//! Text that fits into the columns of a terminal.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

const ELLIPSIS: char = '…';

/// The columns that a text occupies on a terminal.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// The text within `columns`: where it is too long, its middle is left out.
pub(super) fn fitted(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let room = columns.saturating_sub(1);
    let start = taken(text.chars(), room - room / 2);
    let end: String = taken(text.chars().rev(), room / 2).chars().rev().collect();
    Cow::Owned(format!("{start}{ELLIPSIS}{end}"))
}

/// The first characters that fit into the columns.
fn taken(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut left = columns;
    let fits = |char: &char| {
        let width = char.width().unwrap_or(0);
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    };
    chars.take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_long_text_is_left_out() {
        assert_eq!(fitted("java.lang.Thread.run", 20), "java.lang.Thread.run");
        assert_eq!(fitted("java.lang.Thread.run", 19), "java.lang…hread.run");
        assert_eq!(fitted("java.lang.Thread.run", 8), "java…run");
        assert_eq!(fitted("日本語のクラス", 7), "日…ス");
        assert_eq!(fitted("abc", 1), "…");
        assert!((0..20).all(|columns| width(&fitted("日本語abcのクラスdef", columns)) <= columns.max(1)));
    }
}
