//! The original payloads that have been found in a file, and the reasons why payloads cannot be found.

use std::io;
use std::ops::Range;

use thiserror::Error;

/// The most bytes of a format's name. Longer names are ignored.
pub(super) const LONGEST_FORMAT: usize = 64;
/// The most payloads of a file: a [`PayloadPlace`] for each is kept in memory.
const MOST_PAYLOADS: usize = 1 << 16;

/// A profile's `original_payload`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadPlace {
    /// `original_payload_format`.
    pub format: String,
    /// The range of the payload's bytes in the file.
    pub bytes: Range<u64>,
    /// Whether these bytes are base64, as in JSON.
    pub is_base64: bool,
}

/// The reason why payloads cannot be found.
#[derive(Debug, Error)]
pub enum PayloadError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file does not hold profiles.
    #[error("{0}")]
    UnknownFormat(String),
    /// The bytes at this offset are not a protobuf field.
    #[error("byte {0}: not a field of a protobuf message")]
    Malformed(u64),
    /// The text is not JSON, or has a value that such a message cannot have.
    #[error("byte {at}: bad JSON, expected {expected}")]
    Json {
        /// The offset, in bytes from the start of the file.
        at: u64,
        /// The expected element.
        expected: &'static str,
    },
    /// There are more payloads than any file should have.
    #[error("more than {MOST_PAYLOADS} original payloads")]
    TooMany,
}

/// The payloads found so far.
#[derive(Debug, Default)]
pub(super) struct FoundPayloads(Vec<PayloadPlace>);

impl FoundPayloads {
    /// Adds a profile's payload, unless the payload is empty.
    pub(super) fn add(
        &mut self,
        format: String,
        bytes: Range<u64>,
        is_base64: bool,
    ) -> Result<(), PayloadError> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.0.len() == MOST_PAYLOADS {
            return Err(PayloadError::TooMany);
        }
        let format = Some(format).filter(|format| format.len() <= LONGEST_FORMAT).unwrap_or_default();
        self.0.push(PayloadPlace { format, bytes, is_base64 });
        Ok(())
    }

    /// The payloads, in the order in which they were added.
    pub(super) fn into_places(self) -> Vec<PayloadPlace> {
        self.0
    }
}
