//! The reason why an object has no file.

use std::fmt;
use std::path::PathBuf;

use super::identity::{IdError, ObjectIdentity};

/// The reason why no file of an object is known.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotLocated {
    /// The object cannot be told from others of its name.
    #[error(transparent)]
    Identity(#[from] IdError),
    /// No place has a file of the object.
    #[error("no file with {identity} in {}{}", listed(.places), reason(.rejected.as_deref()))]
    NotFound {
        /// The object.
        identity: Box<ObjectIdentity>,
        /// The places that were searched.
        places: Vec<String>,
        /// The first file that was expected to belong to the object and does not.
        rejected: Option<Box<Rejected>>,
    },
}

/// A file that was expected to belong to an object and is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub why: String,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not used: {}", self.path.display(), self.why)
    }
}

fn reason(rejected: Option<&Rejected>) -> String {
    rejected.map_or_else(String::new, |rejected| format!("; {rejected}"))
}

fn listed(places: &[String]) -> String {
    if places.is_empty() { "no place: none was given".to_owned() } else { places.join(", ") }
}
