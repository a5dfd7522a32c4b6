//! What is exported: one encoded OTLP message.

/// How a message is encoded, and so what a collector is told it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentType {
    /// OTLP protobuf.
    Protobuf,
    /// OTLP/JSON: one document without a line break.
    Json,
}

impl ContentType {
    /// The value of the `Content-Type` header.
    pub const fn mime(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }
}

/// One encoded `ExportProfilesServiceRequest` (as a file's content: `ProfilesData`, which has the same layout).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The encoded bytes, without framing or compression.
    pub body: Vec<u8>,
    /// How `body` is encoded.
    pub content_type: ContentType,
    /// Number of `Sample`s in it, for the counters.
    pub samples: u64,
}
