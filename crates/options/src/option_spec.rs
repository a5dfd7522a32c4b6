//! The form of an option in the table, and the parts that the rows share.

use std::time::Duration;

use otlpprof_export::upload::Compression;

use super::draft::Draft;

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
    /// Whether a value adds to the values of weaker sources, instead of replacing them.
    pub(super) adds: bool,
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

/// An option without default or bare form, not secret, and replaced by stronger sources: the base of the
/// table's entries.
pub(super) const PLAIN: OptionSpec = OptionSpec {
    name: "",
    value: "",
    default: None,
    bare: None,
    secret: false,
    adds: false,
    help: "",
    read: |_, _| Ok(()),
};

pub(super) const US: Duration = Duration::from_micros(1);
pub(super) const HOUR: Duration = Duration::from_secs(3600);
pub(super) const GIB: usize = 1 << 30;

/// The separator of the items of a list in a value.
pub(super) const LIST_SEPARATOR: char = '+';

/// The compressions, by the names that OTEL_EXPORTER_OTLP_COMPRESSION uses too.
pub(super) const COMPRESSIONS: [(&str, Compression); 2] =
    [("gzip", Compression::Gzip), ("none", Compression::None)];

/// Stores a value that could be parsed.
pub(super) fn set<T>(field: &mut T, value: Result<T, String>) -> Result<(), String> {
    value.map(|value| *field = value)
}
