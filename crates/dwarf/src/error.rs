//! The errors of debug information.

use std::io;

use otlpprof_elf::file::FileError;

use super::limits;

/// The reason why debug information, or a part of it, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DwarfError {
    /// The file is no usable ELF file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A section is not inside the file, or cannot be read.
    #[error("section {section} cannot be read: {why}")]
    Section {
        /// The section's name.
        section: String,
        /// The reason.
        why: io::Error,
    },
    /// A section is compressed by an unknown method.
    #[error("section {section} is compressed by method {method}, which is unknown")]
    Compression {
        /// The section's name.
        section: String,
        /// `ch_type`
        method: u32,
    },
    /// A compressed section declares more bytes than its compressed bytes can become.
    #[error("section {section} declares {declared} bytes, which {stored} compressed bytes cannot contain")]
    Expansion {
        /// The section's name.
        section: String,
        /// The declared length, in bytes.
        declared: u64,
        /// The compressed length, in bytes.
        stored: u64,
    },
    /// A section is too long.
    #[error("section {section} has {len} bytes, more than {limit}")]
    SectionTooLong {
        /// The section's name.
        section: String,
        /// The section's length, in bytes.
        len: u64,
        /// The bound, in bytes.
        limit: u64,
    },
    /// A compressed section does not contain the bytes that it declares.
    #[error("section {section} declares {declared} bytes, but has {found}")]
    SectionLength {
        /// The section's name.
        section: String,
        /// The declared length, in bytes.
        declared: u64,
        /// The length that was found, in bytes.
        found: u64,
    },
    /// A unit extends past the end of `.debug_info`.
    #[error("the unit at {offset:#x} declares {len} bytes, past the end of .debug_info")]
    UnitOutside {
        /// The unit's offset in `.debug_info`.
        offset: u64,
        /// The declared length, in bytes.
        len: u64,
    },
    /// A unit is too long.
    #[error("the unit at {offset:#x} has {len} bytes, more than {}", limits::UNIT)]
    UnitTooLong {
        /// The unit's offset in `.debug_info`.
        offset: u64,
        /// The unit's length, in bytes.
        len: u64,
    },
    /// The debug information breaks the format.
    #[error("malformed debug information: {0}")]
    Malformed(gimli::Error),
    /// A line table has too many rows.
    #[error("a line table of more than {} rows", limits::LINE_ROWS)]
    LineRows,
    /// The units read the same line tables again and again.
    #[error("units share line tables more than {} times", limits::SHARES)]
    SharedLines,
    /// The units read the same abbreviations or heads of line tables again and again.
    #[error("units share abbreviations or line tables more than {} times", limits::HEAD_SHARES)]
    SharedHeads,
    /// An entry has too many attributes.
    #[error("an entry of more than {} attributes", limits::ATTRIBUTES)]
    Attributes,
    /// The units read more bytes of split units than these can have.
    #[error("units read more than {} bytes of split units", limits::SPLIT_BYTES)]
    SharedSplit,
    /// Units or functions read the same lists of address ranges again and again.
    #[error("units or functions share lists of address ranges more than {} times", limits::SHARES)]
    SharedRanges,
    /// The units have too many rows together.
    #[error("more than {} rows in all units", limits::ROWS)]
    Rows,
    /// The units have too many functions together.
    #[error("more than {} functions in all units", limits::FUNCTIONS)]
    Functions,
    /// Inlined functions are nested too deeply.
    #[error("more than {} functions inlined into each other", limits::CHAIN)]
    Nesting,
    /// A function's origin leads back to itself, or too far.
    #[error(
        "the origins of a function lead to one another in a circle, or are more than {}",
        limits::ORIGINS
    )]
    Origins,
    /// A name or path is too long.
    #[error("a name of {len} bytes, more than {}", limits::TEXT)]
    Text {
        /// The length, in bytes.
        len: usize,
    },
    /// The names and paths are too long together.
    #[error("more than {} bytes of names and paths", limits::TEXTS)]
    Texts,
    /// A split unit's file is missing, or is another one.
    #[error("no split debug information ({name}, id {dwo_id:016x})")]
    Split {
        /// The name of the `.dwo` file.
        name: String,
        /// The id that the file must have.
        dwo_id: u64,
    },
    /// A reference leads into a supplementary file, and none was given.
    #[error("a reference into a supplementary file, which is missing")]
    Supplementary,
    /// A thread ended by a panic.
    #[error("a reader of debug information panicked")]
    Panicked,
}

impl From<gimli::Error> for DwarfError {
    fn from(error: gimli::Error) -> Self {
        Self::Malformed(error)
    }
}

/// A loss: a unit that could not be read, or only in part.
#[derive(Debug)]
pub struct Problem {
    /// The unit's offset in `.debug_info`.
    pub unit: u64,
    /// The reason.
    pub why: DwarfError,
}
