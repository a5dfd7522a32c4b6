//! A batch to one OTLP message.

use crate::model::Batch;

use super::json_write::JsonWriter;
use super::message_write::{Selection, write_message};
use super::proto_write::ProtoWriter;

/// How a batch is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Where the text of unsymbolized native frames goes.
    pub native_frames: NativeFrames,
    /// Whether each addition's time is written, of profiles all of whose additions have one: where the profile counts
    /// things, in place of the value and as often as the addition counted; beside its value elsewhere.
    pub timestamps: bool,
    /// The encoding.
    pub format: Format,
}

/// Where the text of an unsymbolized native frame goes, `<build-id>.<remote>(0x…)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NativeFrames {
    /// Into a location attribute: backends symbolize the frame.
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

/// The whole batch as one message: ProfilesData, which is an ExportProfilesServiceRequest too.
///
/// Profiles without samples are left out. A batch of none gives a message that is valid and has no profile; it
/// is not worth sending.
pub fn encode(batch: &Batch, options: &EncodeOptions) -> Vec<u8> {
    encode_selection(batch, &select_all(batch), options)
}

/// What a profile was made of, which is put into the message from outside: it may be larger than memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// `original_payload_format`: `jfr`, `pprof` or `linux_perf`.
    pub format: &'static str,
    /// Its bytes.
    pub length: u64,
}

/// A message around its payload, which follows `before` as it is in protobuf and in base64 in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The bytes up to the payload.
    pub before: Vec<u8>,
    /// Those behind it.
    pub after: Vec<u8>,
}

/// The whole batch as one message, whose first profile has the payload; `None` if there is no profile.
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

/// Every sample of every profile.
pub(super) fn select_all(batch: &Batch) -> Vec<Selection> {
    let whole =
        |(profile, samples): (usize, usize)| Selection { profile, samples: 0..samples, with_counts: true };
    batch.profiles.iter().map(|profile| profile.samples().len()).enumerate().map(whole).collect()
}

/// The selected samples as one message.
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
