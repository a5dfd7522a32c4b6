//! The unit of export: one encoded OTLP message.

/// The encoding of a message, and the content type that a collector is sent with it.
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

/// One encoded `ExportProfilesServiceRequest`. In a file it is read as `ProfilesData`, which has the same
/// layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// The encoded bytes, without framing or compression.
    pub body: Vec<u8>,
    /// The encoding of `body`.
    pub content_type: ContentType,
    /// Number of `Sample`s in the message, for the counters.
    pub samples: u64,
}
