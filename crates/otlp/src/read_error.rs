//! Reasons why bytes cannot be read, and oddities of bytes that can.

use std::fmt;

/// The reason why reading stopped. `otlpprof validate` lists the name of every kind among its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Not OTLP protobuf, not length-prefixed, not JSON, not gzip.
    UnknownFormat,
    /// A gzip stream that is truncated or corrupt.
    GzipCorrupt,
    /// More bytes than [`Limits`](super::reader::Limits) allows, or more parts than [`super::bounds`] allows.
    TooLarge,
    /// A length prefix that exceeds the number of bytes after it.
    FrameTruncated,
    /// Bytes that are not protobuf, or end within a field.
    WireMalformed,
    /// A known field with the wrong wire type.
    WireType,
    /// A string field that is not UTF-8.
    WireUtf8,
    /// Messages nested deeper than any sender needs.
    TooDeep,
    /// Samples or profiles of OTLP v1.9 or older, whose fields have other numbers.
    OldSampleLayout,
    /// Not a JSON document.
    JsonMalformed,
    /// A JSON value that its field cannot hold.
    JsonValue,
}

impl ErrorKind {
    /// The kind's stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownFormat => "unknown-format",
            Self::GzipCorrupt => "gzip-corrupt",
            Self::TooLarge => "input-too-large",
            Self::FrameTruncated => "frame-truncated",
            Self::WireMalformed => "wire-malformed",
            Self::WireType => "wire-type",
            Self::WireUtf8 => "wire-utf8",
            Self::TooDeep => "too-deep",
            Self::OldSampleLayout => "old-sample-layout",
            Self::JsonMalformed => "json-malformed",
            Self::JsonValue => "json-value",
        }
    }
}

/// A place in a file. It prints as `byte 17`, or as `byte 17 after decompression`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BytePlace {
    /// The offset in bytes from the start of the file, or of the decompressed file if `compressed`.
    pub offset: u64,
    /// Whether the file is compressed.
    pub compressed: bool,
}

impl fmt::Display for BytePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}", self.offset)?;
        if self.compressed { write!(f, " after decompression") } else { Ok(()) }
    }
}

/// The reason and the place where reading stopped. It prints as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The kind.
    pub kind: ErrorKind,
    /// The offset in bytes from the start of the file, or of the decompressed file if `compressed`.
    pub offset: u64,
    /// Whether the file is compressed.
    pub compressed: bool,
    /// The position of the message or document in the file, from 0.
    pub message: usize,
    /// The field, or empty if unknown:
    /// `resource_profiles[0].scope_profiles[0].profiles[2].samples[14].values`.
    pub path: String,
    /// A description of the error, without the place.
    pub detail: String,
}

impl ReadError {
    /// An error at `offset`, with no path.
    pub(super) fn new(kind: ErrorKind, offset: u64, detail: impl Into<String>) -> Self {
        Self { kind, offset, compressed: false, message: 0, path: String::new(), detail: detail.into() }
    }

    /// The same error with a path.
    pub(super) fn at(self, path: String) -> Self {
        Self { path, ..self }
    }

    /// The place, for people.
    pub fn place(&self) -> BytePlace {
        BytePlace { offset: self.offset, compressed: self.compressed }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} (message {}", self.detail, self.place(), self.message)?;
        if !self.path.is_empty() {
            write!(f, ", {}", self.path)?;
        }
        write!(f, ") [{}]", self.kind.name())
    }
}

impl std::error::Error for ReadError {}

/// An oddity of something that could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoteKind {
    /// A protobuf field that the message type does not have; it was skipped.
    UnknownField,
    /// A number too large for its 32-bit field; the upper bits were dropped.
    IntegerOverflow,
    /// A field that occurs twice but may occur once; the occurrences were merged.
    RepeatedSingular,
    /// A JSON key that the message type does not have; it was skipped.
    JsonUnknownKey,
    /// A JSON key in snake_case; it was read as its lowerCamelCase form.
    JsonSnakeCase,
    /// A JSON key that an object has twice; the last one was read.
    JsonDuplicateKey,
    /// A 64-bit integer as a JSON number; JavaScript loses digits of large ones.
    JsonInt64Number,
    /// An id in base64; it was decoded.
    JsonBase64Id,
    /// Base64 in the URL-safe alphabet or without padding; it was decoded.
    JsonBase64Form,
}

/// The number of [`NoteKind`]s.
const NOTE_KINDS: usize = 9;

/// The most notes of one kind that are kept per message; further notes are only counted.
const NOTES_KEPT: u64 = 20;

/// An oddity and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The kind.
    pub kind: NoteKind,
    /// The offset in bytes from the start of the message; for JSON, the start of the document.
    pub offset: u64,
    /// The path of the field.
    pub path: String,
}

/// The notes of one message: the first few of each kind, and the number of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    first: Vec<Note>,
    counts: [u64; NOTE_KINDS],
}

impl Notes {
    /// Adds a note. `path` is called only if the note is kept.
    pub(super) fn add(&mut self, kind: NoteKind, offset: u64, path: impl FnOnce() -> String) {
        let count = &mut self.counts[kind as usize];
        *count += 1;
        if *count <= NOTES_KEPT {
            self.first.push(Note { kind, offset, path: path() });
        }
    }

    /// The first notes of each kind, in order of occurrence.
    pub fn first(&self) -> &[Note] {
        &self.first
    }

    /// The number of notes of a kind, kept or not.
    pub fn count(&self, kind: NoteKind) -> u64 {
        self.counts[kind as usize]
    }
}
