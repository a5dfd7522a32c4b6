//! Detects messages of OTLP v1.9 and older, whose fields have other numbers under the same names.
//!
//! Decoding a message by the wrong layout often succeeds. So the wire types of each message are compared with
//! the current layout and with the older ones (profiles.proto of opentelemetry-proto v1.7.0 to v1.9.0):
//!
//! - v1.8 and v1.9. Sample: values 2, attribute_indices 3, link_index 4. Profile: comment_strindices 7,
//!   profile_id 8, dropped_attributes_count 9, payload 10 and 11. attribute_table: as now.
//! - v1.7. Sample: locations_length 2, value 3, attribute_indices 4, link_index 5. Profile: location_indices
//!   3, duration 5, period_type 6, period 7, comment_strindices 8, default_sample_type_index 9.
//!   attribute_table: KeyValue, whose key 1 is text.

use otlpprof_protobuf::WireType;

use super::read_error::{ErrorKind, ReadError};
use super::schema::{self, Schema};

/// Whether a field with this number and wire type is wrong in the current layout and was right in an older
/// one.
pub(super) fn explains(schema: &Schema, number: u32, wire_type: WireType) -> bool {
    use WireType::{Delimited, Varint};
    match schema.name {
        _ if std::ptr::eq(schema, &schema::PROFILE) => {
            matches!((number, wire_type), (3 | 6 | 8, Delimited) | (5 | 7 | 9, Varint))
        }
        _ if std::ptr::eq(schema, &schema::SAMPLE) => (number, wire_type) == (5, Varint),
        _ if std::ptr::eq(schema, &schema::KEY_VALUE_AND_UNIT) => (number, wire_type) == (1, Delimited),
        _ => false,
    }
}

/// Decides which layout the samples of a message have.
///
/// v1.8 and v1.9 number `values` as field 2, `attribute_indices` as 3 and `link_index` as 4; the current
/// numbers are 4, 2 and 3. Decoding one layout as the other succeeds. Two rules distinguish them: a link is
/// never length-delimited, and every sample has values or timestamps. Lists of numbers are usually packed but
/// need not be (async-profiler does not pack them), so a varint alone proves nothing. One sample may fit both
/// layouts. All samples of a message have the same layout.
#[derive(Default)]
pub(super) struct SampleLayout {
    /// The offset of the first field for which [`explains`] is true.
    pub(super) explained: Option<u64>,
    /// The offset and path of the first length-delimited field 3.
    pub(super) packed_link: Option<(u64, String)>,
    /// The offset of the first sample that fits only the old layout.
    only_old: Option<u64>,
    /// Whether a sample fits only the current layout.
    only_new: bool,
    /// The offset of the first sample that fits both layouts and resembles the old one.
    rather_old: Option<u64>,
    /// Whether a sample fits both layouts and resembles the current one.
    rather_new: bool,
}

/// The fields of one sample, by wire type.
#[derive(Default)]
pub(super) struct SeenFields {
    packed: [bool; 5],
    varints: [u32; 5],
    times: bool,
}

impl SeenFields {
    pub(super) fn see(&mut self, number: u32, wire_type: WireType) {
        let number = number as usize;
        match wire_type {
            _ if number >= self.packed.len() => self.times = true,
            WireType::Delimited => self.packed[number] = true,
            _ => self.varints[number] = self.varints[number].saturating_add(1),
        }
    }

    fn has(&self, number: usize) -> bool {
        self.packed[number] || self.varints[number] > 0
    }
}

impl SampleLayout {
    pub(super) fn add(&mut self, seen: &SeenFields, offset: u64) {
        let fits_new = (seen.has(4) || seen.times) && !seen.packed[3];
        // v1.7: field 2 is a length, field 3 has the values.
        let fits_oldest = seen.packed[3] && !seen.packed[2] && seen.varints[2] == 1;
        let fits_old = fits_oldest || (seen.has(2) || seen.times) && !seen.packed[4] && seen.varints[4] <= 1;
        match (fits_old, fits_new) {
            (true, false) => drop(self.only_old.get_or_insert(offset)),
            (false, true) => self.only_new = true,
            // A writer that packs field 2 would also pack values in field 4, so field 4 is a link.
            (true, true) if seen.packed[2] && seen.varints[4] == 1 => {
                self.rather_old.get_or_insert(offset);
            }
            (true, true) => self.rather_new = true,
            (false, false) => {}
        }
    }

    /// Decides which layout a message has. `walked` is the result of checking the message. If an older layout
    /// explains the offending fields, the error is the layout's rather than the bytes', unless a sample fits
    /// only the current layout.
    pub(super) fn decide(self, walked: Result<(), ReadError>) -> Result<(), ReadError> {
        let sample = self.only_old.or(if self.rather_new { None } else { self.rather_old });
        let old = match walked {
            Ok(()) => sample,
            Err(_) => self.only_old.or(self.explained),
        };
        let is_of_fields =
            |kind| matches!(kind, ErrorKind::WireType | ErrorKind::WireMalformed | ErrorKind::WireUtf8);
        match (old, walked, self.packed_link) {
            (_, Err(error), _) if !is_of_fields(error.kind) => Err(error),
            (Some(offset), _, _) if !self.only_new => Err(ReadError::new(
                ErrorKind::OldSampleLayout,
                offset,
                "profiles of OTLP v1.9 or older, whose fields are numbered differently from v1.10's",
            )),
            (_, Err(error), _) => Err(error),
            (_, Ok(()), Some((offset, path))) => {
                let detail = "Sample.link_index is length-delimited, not a varint";
                Err(ReadError::new(ErrorKind::WireType, offset, detail).at(path))
            }
            _ => Ok(()),
        }
    }
}
