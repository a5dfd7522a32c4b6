//! The errors that a recording can have, and their places.

/// A place in a recording that cannot be read. All events before it have been delivered or can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {problem}")]
pub struct JfrError {
    /// The offset of the byte in the recording, or in the bytes that were passed as one.
    pub at: u64,
    /// The problem at this place.
    pub problem: Problem,
}

/// The reason why a place cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// No chunk begins here, although one should.
    #[error("not a JFR chunk, which begins with 'FLR\\0'")]
    NoMagic,
    /// The bytes end within a chunk's header.
    #[error("{left} bytes are too few for a chunk header of 68")]
    TruncatedHeader {
        /// Bytes left.
        left: usize,
    },
    /// Version 0 (Oracle JDK 7 and 8) is another format.
    #[error(
        "JFR version {major}.{minor} is not supported, only 1.x and 2.x (JDK 9 and later, 8u262 and later)"
    )]
    UnsupportedVersion {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// The header declares a size that no chunk has.
    #[error("chunk size {0} is impossible")]
    ChunkSize(i64),
    /// The recording ends before the chunk does.
    #[error("the recording ends here, within a chunk")]
    TruncatedChunk,
    /// The size of an event is impossible, so the following events cannot be found.
    #[error("event size {size} is impossible with {left} bytes left")]
    EventSize {
        /// The size that the event declares.
        size: u64,
        /// The bytes left in the chunk, including this event.
        left: usize,
    },
    /// A value extends beyond the end of its event.
    #[error("a value extends past the end of its event")]
    OutOfBounds,
    /// A string has an encoding other than 0 to 5.
    #[error("string encoding {0} is unknown")]
    StringEncoding(u8),
    /// An array or table has more elements than there are bytes left.
    #[error("{count} elements do not fit into {left} bytes")]
    Count {
        /// The number of elements that the recording declares.
        count: u64,
        /// Bytes left.
        left: usize,
    },
    /// An array has many elements of a type that takes no bytes, so its length is not bounded by the bytes
    /// left.
    #[error("{0} elements that take no bytes are too many")]
    EmptyElements(usize),
    /// The chunk has no metadata, which describes its events.
    #[error("the chunk has no metadata so far, so its events cannot be read")]
    NoMetadata,
    /// A chunk is still being written, by a writer that writes constants only at the chunk's end
    /// (async-profiler 4.5 `flightRecorder.cpp`, `Recording::finishChunk`).
    #[error(
        "the chunk is still being written, and so far has none of the stacks and names that its events \
         refer to"
    )]
    NoConstants,
    /// An event of another type is where the header says that metadata or a checkpoint is.
    #[error("event of type {found}, expected {expected}")]
    WrongEvent {
        /// The event's type id.
        found: i64,
        /// The expected type id: 0 for metadata, 1 for a checkpoint.
        expected: i64,
    },
    /// The metadata's tree refers to a string that is not in its table.
    #[error("string {index} is outside of the metadata's {count} strings")]
    MetadataString {
        /// The index.
        index: u64,
        /// The number of strings.
        count: usize,
    },
    /// Metadata or values are nested endlessly or too deeply.
    #[error("nested too deeply")]
    TooDeep,
    /// The types are constructed so that their expansion is endless or too large.
    #[error("the metadata's types are implausibly large")]
    TooLarge,
    /// An attribute that must be a number is missing or is not one.
    #[error("the attribute '{0}' is missing in the metadata or is not a number")]
    Attribute(&'static str),
    /// The metadata does not describe this type.
    #[error("no type has the id {0}")]
    UnknownType(i64),
}

impl Problem {
    /// An error with this problem at an offset.
    pub(super) fn at(self, at: u64) -> JfrError {
        JfrError { at, problem: self }
    }
}
