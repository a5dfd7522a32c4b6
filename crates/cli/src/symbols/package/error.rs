//! The reasons for which a package cannot be read to its end.

use std::io;

/// The most bytes that a package may become, those of all packings within each other added up.
pub(super) const MOST_BYTES: u64 = 256 << 30;

/// A package that cannot be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// The bytes cannot be read, or cannot be decompressed.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// The package breaks its format.
    #[error("{format} package is damaged: {why}")]
    Damaged {
        /// The format.
        format: &'static str,
        /// The rule that is broken.
        why: &'static str,
    },
    /// A form of the format that is not known.
    #[error("{format} package: {what} is not supported")]
    Unknown {
        /// The format.
        format: &'static str,
        /// The form.
        what: &'static str,
    },
    /// The package becomes too many bytes.
    #[error("the package unpacks to more than {MOST_BYTES} bytes")]
    TooLarge,
    /// The file is no package.
    #[error(
        "neither an ELF file nor a package: .deb, .rpm, .tar, .cpio, plain or compressed with gzip, xz, zstd"
    )]
    NoPackage,
    /// The ELF file could not be taken.
    #[error(transparent)]
    Taken(anyhow::Error),
}
