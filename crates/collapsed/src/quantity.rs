//! The comment that names the quantity of a file's values, and its unit.
//!
//! The format has no place for them, and its readers differ in what they make of comments. The line has no
//! space: FlameGraph's flamegraph.pl and speedscope skip lines that do not end in a space and a number,
//! async-profiler's converter skips lines without a space.

use std::fmt;

const BEGINNING: &str = "#otlpprof:";

/// A quantity, such as `cpu`, and the unit of its values, such as `nanoseconds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity<T> {
    /// The name.
    pub name: T,
    /// The unit.
    pub unit: T,
}

impl Quantity<&'static str> {
    /// The quantity of a file that names none.
    pub const SAMPLES: Self = Self { name: "samples", unit: "count" };
}

impl fmt::Display for Quantity<&str> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{BEGINNING}type={},unit={}", Escaped(self.name), Escaped(self.unit))
    }
}

/// A text in which everything but letters, digits and a few signs is `%` and two hexadecimal digits for each
/// byte.
struct Escaped<'e>(&'e str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &byte in self.0.as_bytes() {
            match byte {
                plain if plain.is_ascii_alphanumeric() || b"-_.:/".contains(&plain) => {
                    write!(f, "{}", char::from(plain))?;
                }
                other => write!(f, "%{other:02x}")?,
            }
        }
        Ok(())
    }
}

impl Quantity<String> {
    /// Parses a line; `None` for another comment.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let fields = line.trim_ascii().strip_prefix(BEGINNING)?;
        let (name, unit) = fields.strip_prefix("type=")?.split_once(",unit=")?;
        Some(Self { name: unescaped(name)?, unit: unescaped(unit)? })
    }
}

fn unescaped(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_read_as_it_was_written() {
        for (name, unit) in [("cpu", "nanoseconds"), ("L1 misses, % of é", "count"), ("a=b", "1/s")] {
            let line = Quantity { name, unit }.to_string();
            assert!(!line.contains(' ') && line.is_ascii(), "{line}");
            let read = Quantity::parse(&format!("{line}\r\n")).unwrap();
            assert_eq!((&*read.name, &*read.unit), (name, unit));
        }
        for other in [
            "#otlpprof:",
            "# otlpprof",
            "#otlpprof:type=cpu",
            "#otlpprof:type=,unit=x",
            "#otlpprof:type=%zz,unit=x",
        ] {
            assert_eq!(Quantity::parse(other), None, "{other}");
        }
    }
}
