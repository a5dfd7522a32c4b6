//! Encodes a batch as one OTLP message.

use otlpprof_model::Batch;

use super::encode_options::{EncodeOptions, Format};
use super::json_write::JsonWriter;
use super::message_write::{Payload, Selection, write_message};
use super::proto_write::ProtoWriter;

/// Encodes the whole batch as one message: ProfilesData, which has the same fields as an
/// ExportProfilesServiceRequest.
///
/// Profiles without samples are omitted. A batch without any sample gives a valid message without a profile,
/// which is not worth sending.
pub fn encode(batch: &Batch, options: &EncodeOptions) -> Vec<u8> {
    encode_selection(batch, &select_all(batch), options)
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
