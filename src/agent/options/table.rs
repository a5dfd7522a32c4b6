//! Every option, once: its name, the form of its value, its default, its help line, and its parser.
//!
//! An option's environment variable follows from its name: `OTLPPROF_` and the name in capitals, with dots
//! replaced by underscores.

mod delivery;
mod engines;
mod samples;

use std::time::Duration;

use super::draft::Draft;
use crate::export::upload::Compression;

/// One option.
pub(super) struct OptionSpec {
    /// Its name in the agent string.
    pub(super) name: &'static str,
    /// The form of a value, for the help.
    pub(super) value: &'static str,
    /// The value if no source gives one; `None`: the option is unset then.
    pub(super) default: Option<&'static str>,
    /// The value of the bare name; `None`: the option needs a value.
    pub(super) bare: Option<&'static str>,
    /// Whether messages must not repeat the value.
    pub(super) secret: bool,
    /// One line for the user.
    pub(super) help: &'static str,
    /// Parses a value into the draft, or returns a description of valid values.
    pub(super) read: fn(&mut Draft, &str) -> Result<(), String>,
}

impl OptionSpec {
    /// The name of the variable that also sets the option.
    pub(super) fn environment_variable(&self) -> String {
        format!("{ENVIRONMENT_PREFIX}{}", self.name.replace('.', "_").to_uppercase())
    }
}

/// The prefix of this project's variables.
pub(super) const ENVIRONMENT_PREFIX: &str = "OTLPPROF_";

/// Returns the option of this name.
pub(super) fn find(name: &str) -> Option<&'static OptionSpec> {
    all().find(|option| option.name == name)
}

const US: Duration = Duration::from_micros(1);
const HOUR: Duration = Duration::from_secs(3600);
const GIB: usize = 1 << 30;

/// An option without default or bare form, and not secret: the base of the table's entries.
const PLAIN: OptionSpec = OptionSpec {
    name: "",
    value: "",
    default: None,
    bare: None,
    secret: false,
    help: "",
    read: |_, _| Ok(()),
};

/// All options, in the order of the help. Where two write the same thing, the later one wins.
pub(super) fn all() -> impl Iterator<Item = &'static OptionSpec> {
    [engines::OPTIONS, samples::OPTIONS, delivery::OPTIONS].into_iter().flatten()
}

/// The separator of the items of a list in a value.
const LIST_SEPARATOR: char = '+';

/// The compressions, by the names that OTEL_EXPORTER_OTLP_COMPRESSION uses too.
pub(super) const COMPRESSIONS: [(&str, Compression); 2] =
    [("gzip", Compression::Gzip), ("none", Compression::None)];

fn set<T>(field: &mut T, value: Result<T, String>) -> Result<(), String> {
    value.map(|value| *field = value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_spelt_alike() {
        for (i, option) in all().enumerate() {
            assert!(all().take(i).all(|earlier| earlier.name != option.name), "{}", option.name);
            assert!(
                option.name.bytes().all(|c| c.is_ascii_lowercase() || c == b'.' || c == b'_'),
                "{}",
                option.name
            );
            assert!(!option.value.is_empty() && !option.help.is_empty(), "{}", option.name);
            // Two names must not map to one variable.
            let variable = option.environment_variable();
            assert!(all().take(i).all(|earlier| earlier.environment_variable() != variable), "{variable}");
        }
    }

    #[test]
    fn defaults_and_bare_forms_can_be_read() {
        for option in all() {
            for text in [option.default, option.bare].into_iter().flatten() {
                assert_eq!((option.read)(&mut Draft::default(), text), Ok(()), "{}={text}", option.name);
            }
        }
    }
}
