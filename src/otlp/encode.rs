//! Encodes a batch as one OTLP message.

use crate::model::Batch;

use super::json_write::JsonWriter;
use super::message_write::{Selection, write_message};
use super::proto_write::ProtoWriter;

/// How a batch is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Where the text of an unsymbolized native frame is written.
    pub native_frames: NativeFrames,
    /// Whether to write the time of each addition, for profiles all of whose additions have one. In a profile
    /// that counts things, the times replace the value, and each time is repeated as often as its addition
    /// counted. In other profiles each time stands beside its value.
    pub timestamps: bool,
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

/// Encodes the whole batch as one message: ProfilesData, which has the same fields as an
/// ExportProfilesServiceRequest.
///
/// Profiles without samples are omitted. A batch without any sample gives a valid message without a profile,
/// which is not worth sending.
pub fn encode(batch: &Batch, options: &EncodeOptions) -> Vec<u8> {
    encode_selection(batch, &select_all(batch), options)
}

/// The original payload of a profile. The caller writes its bytes into the message, since they may not fit in
/// memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// `original_payload_format`: `jfr`, `pprof` or `linux_perf`.
    pub format: &'static str,
    /// The payload's length, in bytes.
    pub length: u64,
}

/// A message in two parts. The payload goes between them: raw in protobuf, as base64 in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The bytes up to the payload.
    pub before: Vec<u8>,
    /// The bytes after the payload.
    pub after: Vec<u8>,
}

/// Encodes the whole batch as one message whose first profile has the payload; `None` if no profile has
/// samples.
pub fn encode_around(batch: &Batch, payload: &Payload, options: &EncodeOptions) -> Option<Parts> {
    let selections = select_all(batch);
    if selections.iter().all(|selection| selection.samples.is_empty()) {
        return None;
    }
    let (before, after) = match options.format {
        Format::Proto => {
            let mut writer = ProtoWriter::default();
            write_message(&mut writer, batch, &selections, options, Some(payload));
            writer.into_parts()
        }
        Format::Json => {
            let mut writer = JsonWriter::default();
            write_message(&mut writer, batch, &selections, options, Some(payload));
            writer.into_parts()
        }
    };
    Some(Parts { before, after })
}

/// Selects every sample of every profile.
pub(super) fn select_all(batch: &Batch) -> Vec<Selection> {
    let whole =
        |(profile, samples): (usize, usize)| Selection { profile, samples: 0..samples, with_counts: true };
    batch.profiles.iter().map(|profile| profile.samples().len()).enumerate().map(whole).collect()
}

/// Encodes the selected samples as one message.
pub(super) fn encode_selection(batch: &Batch, selections: &[Selection], options: &EncodeOptions) -> Vec<u8> {
    match options.format {
        Format::Proto => {
            let mut writer = ProtoWriter::default();
            write_message(&mut writer, batch, selections, options, None);
            writer.into_bytes()
        }
        Format::Json => {
            let mut writer = JsonWriter::default();
            write_message(&mut writer, batch, selections, options, None);
            writer.into_bytes()
        }
    }
}
