//! The environment variables that options are read from.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// A snapshot of environment variables. Empty ones count as unset (OpenTelemetry, "Environment Variable
/// Specification", "Parsing empty value").
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    /// The system properties that replace variables, by the variable's name, in the form in which the user
    /// knows them.
    properties: BTreeMap<String, String>,
    /// Names of the variables whose name or value is not UTF-8, as far as the names can be shown.
    unreadable: Vec<String>,
}

impl Environment {
    /// The variables of this process.
    pub fn of_process() -> Self {
        Self::of(std::env::vars_os())
    }

    /// An environment of these variables, whose bytes need not be UTF-8.
    pub(super) fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut environment = Self::default();
        for (name, value) in variables {
            match (name.into_string(), value.into_string()) {
                (Ok(_), Ok(value)) if value.is_empty() => {}
                (Ok(name), Ok(value)) => drop(environment.variables.insert(name, value)),
                (Ok(name), Err(_)) => environment.unreadable.push(name),
                (Err(name), _) => environment.unreadable.push(name.to_string_lossy().into_owned()),
            }
        }
        environment.unreadable.sort();
        environment
    }

    /// Adds system properties, which override the variables that they replace: `otel.service.name` replaces
    /// `OTEL_SERVICE_NAME` (OpenTelemetry Java, "Environment variables and system properties").
    #[must_use]
    pub fn with_properties(mut self, properties: impl IntoIterator<Item = (String, String)>) -> Self {
        for (property, value) in properties.into_iter().filter(|(_, value)| !value.is_empty()) {
            let variable = property.to_uppercase().replace(['.', '-'], "_");
            self.properties.insert(variable.clone(), format!("-D{property}"));
            self.variables.insert(variable, value);
        }
        self
    }

    /// The name of a variable in messages: its own name, or the name of the system property that replaces it.
    pub(super) fn shown<'a>(&'a self, name: &'a str) -> &'a str {
        self.properties.get(name).map_or(name, String::as_str)
    }

    /// The names, as far as they can be shown, that begin with `prefix` and belong to variables whose name or
    /// value is not UTF-8.
    pub(super) fn unreadable_with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        self.unreadable.iter().map(String::as_str).filter(move |name| name.starts_with(prefix))
    }

    /// The value of a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// The names that begin with `prefix`.
    pub(super) fn names_with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        self.variables.keys().map(String::as_str).filter(move |name| name.starts_with(prefix))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self::of(variables.into_iter().map(|(name, value)| (name.into().into(), value.into().into())))
    }
}
