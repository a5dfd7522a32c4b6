//! `process.executable.build_id.htlhash`: identifies a file's content by a hash of its head, tail and length
//! (OpenTelemetry semantic conventions, profiles).

use std::fmt;
use std::io;

use otlpprof_core::build_id::BuildId;
use sha2::{Digest as _, Sha256};

use super::source::Source;

/// The first half of the SHA-256 of head, tail and length. Displayed as 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HtlHash(pub [u8; 16]);

/// The length of head and of tail, in bytes. They overlap in a file shorter than both together.
const PART: u64 = 4096;

impl HtlHash {
    /// Reads and hashes at most 8 KiB of `source`.
    ///
    /// # Errors
    /// If `source` cannot be read.
    pub fn of(source: &(impl Source + ?Sized)) -> io::Result<Self> {
        let len = source.len();
        let part = len.min(PART);
        let mut message = source.read(0, part)?;
        message.extend(source.read(len - part, part)?);
        message.extend(len.to_be_bytes());
        let digest: [u8; 32] = Sha256::digest(&message).into();
        // SANITY: the digest has 32 bytes.
        Ok(Self(*digest.first_chunk().unwrap()))
    }
}

impl HtlHash {
    /// Parses 32 hexadecimal digits of either case; `None` if the text is anything else.
    pub fn from_hex(hex: &str) -> Option<Self> {
        BuildId::from_hex(hex)?.as_bytes().try_into().map(Self).ok()
    }
}

impl fmt::Display for HtlHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for HtlHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HtlHash({self})")
    }
}
