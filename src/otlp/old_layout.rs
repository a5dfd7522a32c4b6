//! Messages of OTLP v1.9 and older, whose fields have other numbers under the same names.
//!
//! Decoding one layout as another succeeds as often as not, so each message is held to what today's fields
//! are on the wire, and to what the older ones were (profiles.proto of opentelemetry-proto v1.7.0 to v1.9.0):
//!
//! | Message | v1.8 and v1.9 | v1.7 |
//! |---|---|---|
//! | Sample | values 2, attribute_indices 3, link_index 4 | locations_length 2, value 3, attribute_indices 4, link_index 5 |
//! | Profile | comment_strindices 7, profile_id 8, dropped_attributes_count 9, payload 10 and 11 | location_indices 3, duration 5, period_type 6, period 7, comment_strindices 8, default_sample_type_index 9 |
//! | attribute_table | today's | KeyValue, whose key 1 is text |

use super::protobuf_cursor::WireType;
use super::read_error::{ErrorKind, ReadError};
use super::schema::{self, Schema};

/// Whether a field of this number and type is wrong today, and was right in an older layout.
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

/// Which layout the samples of a message have.
///
/// v1.8 and v1.9 had `values` as field 2, `attribute_indices` 3 and `link_index` 4; today these are 4, 2 and
/// 3. Decoding one layout as the other succeeds. What tells: a link is never length-delimited, and a sample
/// has values or timestamps. Repeated numbers are usually packed but need not be (async-profiler does not
/// pack), so a varint says nothing by itself. One sample may fit both layouts; a message's samples are of
/// one.
#[derive(Default)]
pub(super) struct SampleLayout {
    /// Where the first field is that [`explains`] knows.
    pub(super) explained: Option<u64>,
    /// The first length-delimited field 3, offset and path.
    pub(super) packed_link: Option<(u64, String)>,
    /// The first sample that fits the old layout alone.
    only_old: Option<u64>,
    /// Whether a sample fits today's alone.
    only_new: bool,
    /// The first sample that fits both and looks like the old one.
    rather_old: Option<u64>,
    /// Whether a sample fits both and looks like today's.
    rather_new: bool,
}

/// Which fields one sample has, by how they are encoded.
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
        // v1.7: a length, and values.
        let fits_oldest = seen.packed[3] && !seen.packed[2] && seen.varints[2] == 1;
        let fits_old = fits_oldest || (seen.has(2) || seen.times) && !seen.packed[4] && seen.varints[4] <= 1;
        match (fits_old, fits_new) {
            (true, false) => drop(self.only_old.get_or_insert(offset)),
            (false, true) => self.only_new = true,
            // A writer that packs field 2 would pack values in field 4 too: the field is a link.
            (true, true) if seen.packed[2] && seen.varints[4] == 1 => {
                self.rather_old.get_or_insert(offset);
            }
            (true, true) => self.rather_new = true,
            (false, false) => {}
        }
    }

    /// Decides which layout a message has that was `walked` to its end or to an error. Fields that an older layout explains are an
    /// error of the layout rather than of the bytes, unless a sample is of today's.
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
