//! The reason why bytes cannot be read as a profile.

use thiserror::Error;

/// An error with its place. It prints as one line.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{place}: {detail}")]
pub struct PprofError {
    /// The place: `byte 17`, `sample 3`, `location 5`.
    place: String,
    /// The description.
    detail: String,
}

impl PprofError {
    /// An error at this place.
    pub(super) fn new(place: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { place: place.into(), detail: detail.into() }
    }
}
