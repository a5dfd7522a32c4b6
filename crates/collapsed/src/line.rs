//! One line of collapsed stacks.

use thiserror::Error;

/// The longest part of a line that an error shows, in bytes.
const SHOWN: usize = 40;

/// The most frames of a stack.
const MOST_FRAMES: usize = 1 << 18;

/// The unit in which a file with fractions is read, as a part of 1.
const BILLIONTH: f64 = 1e-9;

/// A line: a stack and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StackLine<'l> {
    /// The frames, oldest first, separated by `;`.
    pub(super) stack: &'l str,
    /// The value; not negative.
    pub(super) value: i64,
}

/// The numbers that the values of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// Whole numbers.
    Whole,
    /// Fractions too. Each value is read as billionths, and rounded to whole ones.
    Billionths,
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
    /// A fraction after many lines of whole numbers.
    #[error("the value \"{0}\" is a fraction, and the values at the beginning are whole numbers")]
    Fraction(String),
    /// The values up to this line exceed 63 bits.
    #[error("the sum of the values up to here is not below 2^63")]
    SumTooLarge,
    /// A comment names another quantity than the one at the beginning of the file.
    #[error("the values from here on are of another type or unit")]
    OtherQuantity,
    /// Each line has two values, as difffolded.pl writes them.
    #[error(
        "two values, {0} and {1}, as in all lines; to compare two profiles, pass both files: \
         otlpprof diff BASE NEW"
    )]
    TwoValues(String, String),
}

/// Parses a line without its end; `None` for a blank one and for a comment.
pub(super) fn parse(line: &str, scale: Scale) -> Result<Option<StackLine<'_>>, LineProblem> {
    let line = line.trim_ascii();
    if line.is_empty() || is_comment(line) {
        return Ok(None);
    }
    let Some((stack, value)) = divide(line) else {
        let is_number = is_whole(line) || is_fraction(line);
        return Err(if is_number { LineProblem::NoStack } else { LineProblem::NoValue });
    };
    let value = number(value, scale)?;
    let may_be_deep = stack.len() >= MOST_FRAMES;
    if may_be_deep && stack.bytes().filter(|&byte| byte == b';').count() >= MOST_FRAMES {
        return Err(LineProblem::TooDeep);
    }
    Ok(Some(StackLine { stack, value }))
}

/// Whether a line is a comment, which begins with `#`. `#<` begins the name of a class in Ruby.
pub(super) fn is_comment(line: &str) -> bool {
    line.trim_ascii_start().strip_prefix('#').is_some_and(|rest| !rest.starts_with('<'))
}

/// Divides a line that is no comment into a stack and the text of its value; `None` if one of them is absent.
pub(super) fn divide(line: &str) -> Option<(&str, &str)> {
    let (stack, value) = line.trim_ascii().rsplit_once([' ', '\t'])?;
    (!is_comment(stack)).then_some((stack.trim_ascii_end(), value))
}

/// Whether a text is a whole number.
pub(super) fn is_whole(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit())
}

/// Whether a text is a number with a decimal point or an exponent, such as `0.75`, `.25` or `1e-1`.
pub(super) fn is_fraction(text: &str) -> bool {
    let has_form = text.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    has_form && !is_whole(text) && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// The beginning of a text, for an error.
pub(super) fn shown(text: &str) -> String {
    text[..text.floor_char_boundary(SHOWN)].to_owned()
}

fn number(text: &str, scale: Scale) -> Result<i64, LineProblem> {
    let is_number = |text: &str| is_whole(text) || is_fraction(text);
    let number = match scale {
        _ if text.strip_prefix('-').is_some_and(is_number) => {
            return Err(LineProblem::Negative(shown(text)));
        }
        Scale::Whole if is_fraction(text) => return Err(LineProblem::Fraction(shown(text))),
        Scale::Whole => text.parse().ok().filter(|_| is_whole(text)),
        Scale::Billionths => billionths(text),
    };
    number.ok_or_else(|| LineProblem::NoNumber(shown(text)))
}

/// A number as billionths; `None` if the text is none, or for 2^63 billionths and more.
fn billionths(text: &str) -> Option<i64> {
    if !is_whole(text) && !is_fraction(text) {
        return None;
    }
    let number = (text.parse::<f64>().ok()? / BILLIONTH).round();
    // i64::MAX as a floating-point number is 2^63, which is too large.
    (number < i64::MAX as f64).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(line: &str) -> Result<Option<StackLine<'_>>, LineProblem> {
        parse(line, Scale::Whole)
    }

    #[test]
    fn a_line_is_a_stack_and_a_number() {
        let line = |stack, value| Ok(Some(StackLine { stack, value }));
        assert_eq!(whole("main;run 42"), line("main;run", 42));
        assert_eq!(whole("operator new(unsigned long) 7\r"), line("operator new(unsigned long)", 7));
        assert_eq!(whole("[a b tid=1];run\t0"), line("[a b tid=1];run", 0));
        assert_eq!(whole(" \t"), Ok(None));
        assert_eq!(whole("a 9223372036854775807"), line("a", i64::MAX));
        assert_eq!(whole("  main;run  42"), line("main;run", 42));
        assert_eq!(whole("#<Class:Shop>#cart;sum 3"), line("#<Class:Shop>#cart;sum", 3));
    }

    #[test]
    fn comments_are_no_stacks() {
        for comment in ["# duration: 4200", "#", "#x 1", " # a;b 7"] {
            assert_eq!(whole(comment), Ok(None), "{comment}");
        }
    }

    #[test]
    fn fractions_are_billionths() {
        let value = |line| parse(line, Scale::Billionths).unwrap().unwrap().value;
        for (line, billionths) in [
            ("a 0.75", 750_000_000),
            ("a .25", 250_000_000),
            ("a 1e-1", 100_000_000),
            ("a 2", 2_000_000_000),
            ("a 0.30000000000000004", 300_000_000),
            ("a 0.0000000004", 0),
        ] {
            assert_eq!(value(line), billionths, "{line}");
        }
        for refused in ["a 1e10", "a inf", "a nan", "a +1.5", "a 0x1p3"] {
            let problem = parse(refused, Scale::Billionths).unwrap_err();
            assert!(matches!(problem, LineProblem::NoNumber(_)), "{refused}: {problem}");
        }
    }

    #[test]
    fn other_lines_are_refused_with_the_reason() {
        for (line, problem) in [
            ("main;run", LineProblem::NoValue),
            ("42", LineProblem::NoStack),
            (" 42", LineProblem::NoStack),
            ("a -5", LineProblem::Negative("-5".into())),
            ("a 1.5", LineProblem::Fraction("1.5".into())),
            ("a -1.5", LineProblem::Negative("-1.5".into())),
            ("a +5", LineProblem::NoNumber("+5".into())),
            ("a 9223372036854775808", LineProblem::NoNumber("9223372036854775808".into())),
        ] {
            assert_eq!(whole(line), Err(problem), "{line}");
        }
        assert_eq!(whole(&format!("{} 1", ";".repeat(MOST_FRAMES))), Err(LineProblem::TooDeep));
        assert!(whole(&format!("{} 1", ";".repeat(MOST_FRAMES - 1))).is_ok());
        let Err(LineProblem::NoNumber(shown)) = whole(&format!("a {}", "é".repeat(99))) else { panic!() };
        assert_eq!(shown, "é".repeat(20));
    }
}
