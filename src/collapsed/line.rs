//! One line of collapsed stacks.

use thiserror::Error;

/// The longest part of a line that an error shows, in bytes.
const SHOWN: usize = 40;

/// The most frames of a stack.
const MOST_FRAMES: usize = 1 << 18;

/// A line: a stack and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'l> {
    /// The frames, oldest first, separated by `;`.
    pub(super) stack: &'l str,
    /// The value; not negative.
    pub(super) value: i64,
}

/// The reason why a line cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LineProblem {
    /// The line has too many bytes.
    #[error("longer than {0} bytes")]
    TooLong(usize),
    /// The stack has too many frames.
    #[error("more than {MOST_FRAMES} frames")]
    TooDeep,
    /// There is no space.
    #[error("no value; a line is FRAME;FRAME;FRAME VALUE")]
    NoValue,
    /// There is nothing before the value.
    #[error("no stack; a line is FRAME;FRAME;FRAME VALUE")]
    NoStack,
    /// The value is below 0, as in a difference of two profiles.
    #[error("the negative value {0}; a difference is made by comparing two files")]
    Negative(String),
    /// The text after the last space is no number that fits 63 bits.
    #[error("the value \"{0}\" is not a whole number below 2^63")]
    NoNumber(String),
}

/// Parses a line without its end; `None` for a blank one.
pub(super) fn parse(line: &str) -> Result<Option<Line<'_>>, LineProblem> {
    let line = line.trim_ascii_end();
    if line.is_empty() {
        return Ok(None);
    }
    let Some((stack, value)) = line.rsplit_once([' ', '\t']) else {
        return Err(if is_number(line) { LineProblem::NoStack } else { LineProblem::NoValue });
    };
    let shown = || value[..value.floor_char_boundary(SHOWN)].to_owned();
    if value.strip_prefix('-').is_some_and(is_number) {
        return Err(LineProblem::Negative(shown()));
    }
    let number = value.parse().ok().filter(|_| is_number(value));
    let value = number.ok_or_else(|| LineProblem::NoNumber(shown()))?;
    let stack = stack.trim_ascii_end();
    if stack.is_empty() {
        return Err(LineProblem::NoStack);
    }
    let may_be_deep = stack.len() >= MOST_FRAMES;
    if may_be_deep && stack.bytes().filter(|&byte| byte == b';').count() >= MOST_FRAMES {
        return Err(LineProblem::TooDeep);
    }
    Ok(Some(Line { stack, value }))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_stack_and_a_number() {
        let line = |stack, value| Ok(Some(Line { stack, value }));
        assert_eq!(parse("main;run 42"), line("main;run", 42));
        assert_eq!(parse("operator new(unsigned long) 7\r"), line("operator new(unsigned long)", 7));
        assert_eq!(parse("[a b tid=1];run\t0"), line("[a b tid=1];run", 0));
        assert_eq!(parse(" \t"), Ok(None));
        assert_eq!(parse("a 9223372036854775807"), line("a", i64::MAX));
    }

    #[test]
    fn other_lines_are_refused_with_the_reason() {
        for (line, problem) in [
            ("main;run", LineProblem::NoValue),
            ("42", LineProblem::NoStack),
            (" 42", LineProblem::NoStack),
            ("a -5", LineProblem::Negative("-5".into())),
            ("a 1.5", LineProblem::NoNumber("1.5".into())),
            ("a +5", LineProblem::NoNumber("+5".into())),
            ("a 9223372036854775808", LineProblem::NoNumber("9223372036854775808".into())),
        ] {
            assert_eq!(parse(line), Err(problem), "{line}");
        }
        assert_eq!(parse(&format!("{} 1", ";".repeat(MOST_FRAMES))), Err(LineProblem::TooDeep));
        assert!(parse(&format!("{} 1", ";".repeat(MOST_FRAMES - 1))).is_ok());
        let Err(LineProblem::NoNumber(shown)) = parse(&format!("a {}", "é".repeat(99))) else { panic!() };
        assert_eq!(shown, "é".repeat(20));
    }
}
