//! The environment variables that options are read from.

use std::collections::BTreeMap;

/// A snapshot of environment variables. Empty ones count as unset (OpenTelemetry, "Environment Variable
/// Specification", "Parsing empty value").
#[derive(Clone, Debug, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The variables of this process. Those whose name or value is no UTF-8 can be no option and are left out.
    pub fn of_process() -> Self {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    /// The value of a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The names that begin with `prefix`.
    pub(super) fn names_with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.keys().map(String::as_str).filter(move |name| name.starts_with(prefix))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let pairs = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self(pairs.filter(|(_, value): &(String, String)| !value.is_empty()).collect())
    }
}
