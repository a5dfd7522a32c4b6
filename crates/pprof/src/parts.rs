//! The places of a profile's parts in its bytes.

use std::borrow::Cow;

use otlpprof_protobuf::{ByteCursor, Malformed, WireType, fields, payloads};
use prost::Message;

use super::error::PprofError;
use super::messages::{Function, Location, Mapping, ValueType};

/// The number of the field with the samples.
const SAMPLES: u32 = 2;

/// The most sample types of a profile. Go's heap profile has four.
const MOST_TYPES: usize = 64;
/// The most strings, mappings, locations and functions together, in a file of any length. Each takes 24 bytes
/// of memory or less beside its own bytes.
const MOST_PARTS: usize = 1 << 23;
/// The number of parts that even a short file may have, and the fewest bytes for each part of a longer one.
const FEW_PARTS: usize = 1 << 20;
const BYTES_FOR_EACH: usize = 6;
/// The most bytes of a mapping, a location and a function, and of each list of numbers outside of samples.
const PART_BYTES: usize = 1 << 20;
/// The most bytes of a sample.
const SAMPLE_BYTES: usize = 1 << 22;
/// The most comments that are kept.
const MOST_COMMENTS: usize = 1 << 10;

/// A profile whose parts stay encoded.
#[derive(Debug, Default)]
pub(super) struct Parts<'b> {
    bytes: &'b [u8],
    pub(super) sample_types: Vec<ValueType>,
    mappings: Table<'b>,
    locations: Table<'b>,
    functions: Table<'b>,
    strings: Vec<&'b [u8]>,
    /// Whether a text is a name in Java's own packages, so that the profile comes from a JVM.
    pub(super) is_of_jvm: bool,
    /// The id of the first mapping, which is the program's by convention.
    pub(super) first_mapping: Option<u64>,
    pub(super) time_unix_nano: i64,
    pub(super) duration_nano: i64,
    pub(super) period_type: Option<ValueType>,
    pub(super) period: i64,
    pub(super) comments: Vec<i64>,
    /// The name of the type that is shown if none is chosen; 0 if there is none.
    pub(super) default_sample_type: i64,
}

/// Parts of one kind, sorted by id.
#[derive(Debug, Default)]
struct Table<'b>(Vec<(u64, &'b [u8])>);

impl<'b> Parts<'b> {
    /// Finds the parts.
    pub(super) fn of(bytes: &'b [u8]) -> Result<Self, PprofError> {
        let mut parts = Self { bytes, ..Self::default() };
        let mut rest = ByteCursor::new(bytes);
        let mut count = 0_usize;
        let most = FEW_PARTS.max(bytes.len() / BYTES_FOR_EACH).min(MOST_PARTS);
        while !rest.is_empty() {
            let at = rest.at;
            let error = |detail: String| PprofError::new(format!("byte {at}"), detail);
            let malformed = |why: Malformed| error(why.to_string());
            let (number, wire_type) = rest.key().map_err(malformed)?;
            let (value, part) = rest.value(wire_type).map_err(malformed)?;
            parts.add(number, wire_type, value as i64, part).map_err(error)?;
            count += usize::from((3..=6).contains(&number));
            if count > most {
                return Err(error(format!("more than {most} strings, mappings, locations and functions")));
            }
        }
        for (table, name) in [
            (&mut parts.mappings, "mapping"),
            (&mut parts.locations, "location"),
            (&mut parts.functions, "function"),
        ] {
            table.sort(name)?;
        }
        if parts.strings.first().is_none_or(|first| !first.is_empty()) {
            return Err(PprofError::new(
                "string table",
                "the first string is not empty: not a pprof profile",
            ));
        }
        Ok(parts)
    }

    /// Adds a field. The error is a description.
    fn add(&mut self, number: u32, wire_type: WireType, value: i64, part: &'b [u8]) -> Result<(), String> {
        use WireType::{Delimited, Varint};
        let is_short = |most: usize| match part.len() > most {
            true => Err(format!("{} bytes of field {number}: more than {most}", part.len())),
            false => Ok(()),
        };
        match (number, wire_type) {
            (1 | 3..=5 | 11 | 13, Delimited) => is_short(PART_BYTES)?,
            (SAMPLES, Delimited) => is_short(SAMPLE_BYTES)?,
            _ => {}
        }
        match (number, wire_type) {
            (1, Delimited) if self.sample_types.len() == MOST_TYPES => {
                return Err(format!("more than {MOST_TYPES} sample types"));
            }
            (1, Delimited) => self.sample_types.push(message(part)?),
            (SAMPLES, Delimited) => {}
            (3, Delimited) => {
                let id = self.mappings.add(part)?;
                self.first_mapping.get_or_insert(id);
            }
            (4, Delimited) => self.locations.add(part).map(drop)?,
            (5, Delimited) => self.functions.add(part).map(drop)?,
            (6, Delimited) => {
                self.is_of_jvm |= part.starts_with(b"java/lang/") || part.starts_with(b"java.lang.");
                self.strings.push(part);
            }
            (9, Varint) => self.time_unix_nano = value,
            (10, Varint) => self.duration_nano = value,
            (11, Delimited) => self.period_type = Some(message(part)?),
            (12, Varint) => self.period = value,
            (13, Varint) if self.comments.len() < MOST_COMMENTS => self.comments.push(value),
            (13, Delimited) => {
                let mut packed = ByteCursor::new(part);
                while !packed.is_empty() && self.comments.len() < MOST_COMMENTS {
                    self.comments.push(packed.varint().map_err(|why| why.to_string())? as i64);
                }
            }
            (14, Varint) => self.default_sample_type = value,
            (1..=6 | 11, _) | (9 | 10 | 12, _) => {
                return Err(format!("field {number} is {}", wire_type.text()));
            }
            _ => {}
        }
        Ok(())
    }

    /// The samples, encoded.
    pub(super) fn samples(&self) -> impl Iterator<Item = &'b [u8]> + use<'b> {
        payloads(self.bytes, SAMPLES)
    }

    /// A text.
    pub(super) fn text(&self, index: i64) -> Result<Cow<'b, str>, PprofError> {
        let text = usize::try_from(index).ok().and_then(|index| self.strings.get(index));
        let missing = || PprofError::new(format!("string {index}"), "does not exist");
        text.map(|text| String::from_utf8_lossy(text)).ok_or_else(missing)
    }

    /// The mapping of this id.
    pub(super) fn mapping(&self, id: u64) -> Result<Mapping, PprofError> {
        self.mappings.get(id, "mapping")
    }

    /// The location of this id.
    pub(super) fn location(&self, id: u64) -> Result<Location, PprofError> {
        self.locations.get(id, "location")
    }

    /// The function of this id.
    pub(super) fn function(&self, id: u64) -> Result<Function, PprofError> {
        self.functions.get(id, "function")
    }
}

impl<'b> Table<'b> {
    /// Adds a part, and returns its id.
    fn add(&mut self, part: &'b [u8]) -> Result<u64, String> {
        let id = fields(part).filter(|field| field.number == 1).last().map_or(0, |field| field.value);
        if id == 0 {
            return Err("a mapping, location or function without an id".to_owned());
        }
        self.0.push((id, part));
        Ok(id)
    }

    fn sort(&mut self, name: &str) -> Result<(), PprofError> {
        self.0.sort_unstable_by_key(|&(id, _)| id);
        match self.0.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(PprofError::new(format!("{name} {}", pair[0].0), "occurs twice")),
            None => Ok(()),
        }
    }

    fn get<T: Message + Default>(&self, id: u64, name: &str) -> Result<T, PprofError> {
        let place = || format!("{name} {id}");
        let position = self.0.binary_search_by_key(&id, |&(id, _)| id);
        let position = position.map_err(|_| PprofError::new(place(), "does not exist"))?;
        message(self.0[position].1).map_err(|detail| PprofError::new(place(), detail))
    }
}

/// Decodes a part. The error is a description.
pub(super) fn message<T: Message + Default>(bytes: &[u8]) -> Result<T, String> {
    T::decode(bytes).map_err(|error| error.to_string())
}
