//! What can be wrong with a recording, and where.

/// A place in a recording that cannot be read. Everything before it has been, or can be, delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {problem}")]
pub struct JfrError {
    /// Offset of the byte in the recording, or in what was given as one.
    pub at: u64,
    /// What is wrong there.
    pub problem: Problem,
}

/// Why a place cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// A chunk should begin here.
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
    /// The header says a size that no chunk has.
    #[error("chunk size {0} is impossible")]
    ChunkSize(i64),
    /// The recording ends before the chunk does.
    #[error("the recording ends here, within a chunk")]
    TruncatedChunk,
    /// Events cannot be told apart from here on.
    #[error("event size {size} is impossible with {left} bytes left")]
    EventSize {
        /// What the event says.
        size: u64,
        /// Bytes left in the chunk, this event's included.
        left: usize,
    },
    /// A value goes on behind the end of its event.
    #[error("a value goes on behind the end of its event")]
    OutOfBounds,
    /// A string has an encoding other than 0 to 5.
    #[error("string encoding {0} is unknown")]
    StringEncoding(u8),
    /// An array or table has more elements than there are bytes left.
    #[error("{count} elements in {left} bytes")]
    Count {
        /// What the recording says.
        count: u64,
        /// Bytes left.
        left: usize,
    },
    /// An array of many elements that have no byte, of which there could be any number.
    #[error("{0} elements without any byte")]
    EmptyElements(usize),
    /// Nothing in the chunk says what its events consist of.
    #[error("the chunk has no metadata so far, so its events cannot be read")]
    NoMetadata,
    /// A chunk is being written by who writes what events refer to only when it ends (async-profiler 4.5
    /// `flightRecorder.cpp`, `Recording::finishChunk`).
    #[error(
        "the chunk is still being written, and so far has none of the stacks and names that its events refer to"
    )]
    NoConstants,
    /// An event of another type is where the header says that metadata is, or a checkpoint.
    #[error("event of type {found}, expected {expected}")]
    WrongEvent {
        /// The event's type id.
        found: i64,
        /// 0 metadata, 1 checkpoint.
        expected: i64,
    },
    /// The metadata's tree names a string that is not in its table.
    #[error("string {index} of {count} in the metadata")]
    MetadataString {
        /// The index.
        index: u64,
        /// How many strings there are.
        count: usize,
    },
    /// Metadata or values are nested without end, or as good as.
    #[error("nested too deeply")]
    TooDeep,
    /// The types are made to be expanded without end.
    #[error("types of this size are not credible")]
    TooLarge,
    /// An attribute that has to be a number.
    #[error("the attribute '{0}' is missing in the metadata or no number")]
    Attribute(&'static str),
    /// A type that the metadata does not describe.
    #[error("no type has the id {0}")]
    UnknownType(i64),
}

impl Problem {
    /// The error of this problem at an offset.
    pub(super) fn at(self, at: u64) -> JfrError {
        JfrError { at, problem: self }
    }
}
