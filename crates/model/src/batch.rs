//! The unit of output: profiles, their tables, and their origin.

use super::profile::Profile;
use super::tables::Tables;

/// Profiles of one process or recording, with the tables that they refer to.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The profiled entity.
    pub resource: Resource,
    /// The profiler.
    pub scope: Scope,
    /// The tables that the profiles refer to.
    pub tables: Tables,
    /// The profiles.
    pub profiles: Vec<Profile>,
}

/// The profiled entity. Keys are unique, as backends require.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resource {
    attributes: Vec<(String, ResourceValue)>,
}

impl Resource {
    /// Sets an attribute, replacing an earlier value of the key. An empty key is ignored.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<ResourceValue>) {
        let (key, value) = (key.into(), value.into());
        if key.is_empty() {
            return;
        }
        match self.attributes.iter_mut().find(|(other, _)| *other == key) {
            Some((_, old)) => *old = value,
            None => self.attributes.push((key, value)),
        }
    }

    /// Returns the value of an attribute.
    pub fn get(&self, key: &str) -> Option<&ResourceValue> {
        self.attributes.iter().find(|(other, _)| other == key).map(|(_, value)| value)
    }

    /// The attributes in the order in which they were first set.
    pub fn attributes(&self) -> &[(String, ResourceValue)] {
        &self.attributes
    }
}

/// The value of a resource attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum ResourceValue {
    /// A string.
    Str(String),
    /// An integer.
    Int(i64),
    /// True or false.
    Bool(bool),
    /// A floating-point number.
    Double(f64),
}

impl From<&str> for ResourceValue {
    fn from(value: &str) -> Self {
        Self::Str(value.to_owned())
    }
}

impl From<String> for ResourceValue {
    fn from(value: String) -> Self {
        Self::Str(value)
    }
}

impl From<i64> for ResourceValue {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<bool> for ResourceValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for ResourceValue {
    fn from(value: f64) -> Self {
        Self::Double(value)
    }
}

/// The instrumentation scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Its name.
    pub name: String,
    /// This package.
    pub version: String,
    /// Attributes. Keys are unique.
    pub attributes: Vec<(&'static str, String)>,
}

impl Scope {
    /// The name of the scope of otlpprof's own profiles.
    pub const OWN_NAME: &str = "otlpprof";
}

impl Default for Scope {
    /// This package.
    fn default() -> Self {
        Self {
            name: Self::OWN_NAME.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            attributes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_keys_are_unique_and_never_empty() {
        let mut resource = Resource::default();
        resource.set("service.name", "old");
        resource.set("process.pid", 7);
        resource.set("service.name", "new");
        resource.set("", "nothing");
        assert_eq!(resource.attributes().len(), 2);
        assert_eq!(resource.get("service.name"), Some(&ResourceValue::Str("new".into())));
        assert_eq!(resource.get("absent"), None);
    }
}
