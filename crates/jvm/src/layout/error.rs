//! The errors of learning and checking a JVM's layout.

use thiserror::Error;

/// The reason why this JVM's stacks cannot be walked through its structures. The text is one line for the
/// user.
#[derive(Debug, Error)]
pub enum LayoutError {
    /// A variable that every HotSpot exports is missing.
    #[error("libjvm does not export {symbol}: it is not HotSpot, or was stripped of its dynamic symbols")]
    MissingSymbol {
        /// The variable.
        symbol: String,
    },
    /// A field that the tables should have is missing.
    #[error("libjvm does not describe {structure}::{field}")]
    MissingField {
        /// The structure.
        structure: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A type's size is missing.
    #[error("libjvm does not describe the size of {structure}")]
    MissingSize {
        /// The structure.
        structure: &'static str,
    },
    /// A constant is missing.
    #[error("libjvm does not describe the constant {name}")]
    MissingConstant {
        /// The constant.
        name: &'static str,
    },
    /// A field is described, but the value at its place cannot be right.
    #[error("{structure}::{field} is implausible: {reason}")]
    Implausible {
        /// The structure.
        structure: &'static str,
        /// The field.
        field: &'static str,
        /// The value that was found.
        reason: String,
    },
    /// Required memory cannot be read.
    #[error("cannot read {what}")]
    Unreadable {
        /// The contents of the memory.
        what: &'static str,
    },
    /// A walk found another stack than the VM describes.
    #[error("a stack that the VM describes was walked otherwise: {reason}")]
    OtherStack {
        /// The difference.
        reason: String,
    },
    /// A JNI call of the start-up checks failed.
    #[error("JNI {call} failed")]
    Jni {
        /// The function.
        call: &'static str,
    },
}

impl LayoutError {
    /// The structure and field of an implausible value.
    pub(crate) const fn field(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Implausible { structure, field, .. } => Some((*structure, *field)),
            _ => None,
        }
    }

    /// An implausible field.
    pub(crate) fn implausible(
        structure: &'static str,
        field: &'static str,
        reason: impl Into<String>,
    ) -> Self {
        Self::Implausible { structure, field, reason: reason.into() }
    }
}
