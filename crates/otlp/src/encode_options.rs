//! The choices that a caller has when a batch is encoded.

/// How a batch is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Where the text of an unsymbolized native frame is written.
    pub native_frames: NativeFrames,
    /// Whether to write the time of each addition, for profiles all of whose additions have one. In a profile
    /// that counts things, the times replace the value, and each time is repeated as often as its addition
    /// counted. In other profiles each time stands beside its value.
    pub timestamps: bool,
    /// Whether each time stands beside its value in profiles that count things, too. Such a message does not
    /// grow with the values. A reader must add up values, as this crate's does.
    pub values_beside_times: bool,
    /// Whether profiles without samples are written, for their types and times.
    pub empty_profiles: bool,
    /// The encoding.
    pub format: Format,
}

/// Where the text `<build-id>.<remote>(0x…)` of an unsymbolized native frame is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NativeFrames {
    /// Into a location attribute, so that backends symbolize the frame.
    #[default]
    Remote,
    /// Into the function's name, for backends without a symbolizer.
    Name,
}

/// The encodings of OTLP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Binary protobuf.
    #[default]
    Proto,
    /// OTLP/JSON on one line, without a line end.
    Json,
}
