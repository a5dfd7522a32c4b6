//! Every option, once: its name, type, default, help line, and how it is read.
//!
//! Its environment variable follows from its name: `OTLPPROF_` and the name in capitals, dots as underscores.

mod delivery;
mod engines;
mod samples;

use std::time::Duration;

use super::request::Draft;
use crate::export::upload::Compression;

/// One option.
pub(super) struct OptionSpec {
    /// Its name in the agent string.
    pub(super) name: &'static str,
    /// What a value looks like, for the help.
    pub(super) value: &'static str,
    /// The value it has when nobody says one; `None`: nothing.
    pub(super) default: Option<&'static str>,
    /// What the bare name stands for; `None`: it needs a value.
    pub(super) bare: Option<&'static str>,
    /// Whether messages must not repeat the value.
    pub(super) secret: bool,
    /// One line for the user.
    pub(super) help: &'static str,
    /// Reads a value into the draft, or says what it should have been.
    pub(super) read: fn(&mut Draft, &str) -> Result<(), String>,
}

impl OptionSpec {
    /// The name of the variable that sets the option too.
    pub(super) fn environment_variable(&self) -> String {
        format!("{ENVIRONMENT_PREFIX}{}", self.name.replace('.', "_").to_uppercase())
    }
}

/// How the variables of this project begin.
pub(super) const ENVIRONMENT_PREFIX: &str = "OTLPPROF_";

/// The option of this name.
pub(super) fn find(name: &str) -> Option<&'static OptionSpec> {
    all().find(|option| option.name == name)
}

const US: Duration = Duration::from_micros(1);
const HOUR: Duration = Duration::from_secs(3600);
const GIB: usize = 1 << 30;

/// As an option that is a matter of course would be written: no default, no bare form, nothing secret.
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

/// Between the items of a list inside a value.
const LIST_SEPARATOR: char = '+';

/// The compressions, by the names that OTEL_EXPORTER_OTLP_COMPRESSION has for them too.
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
            // Two names must not meet in one variable.
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
