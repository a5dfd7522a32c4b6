//! Where a file of protobuf messages holds original payloads: found by seeking, as a payload may be far larger than memory.

use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::ops::Range;

use thiserror::Error;

use super::framing::PREFIX;

/// A profile's `original_payload`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadPlace {
    /// `original_payload_format`.
    pub format: String,
    /// Where its bytes are in the file.
    pub bytes: Range<u64>,
}

/// Why payloads cannot be found.
#[derive(Debug, Error)]
pub enum PayloadError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// This is no field.
    #[error("byte {0}: not a field of a protobuf message")]
    Malformed(u64),
}

/// The fields that lead from ProfilesData to a profile: resource_profiles, scope_profiles, profiles.
const PATH: [u64; 3] = [1, 2, 2];
const FORMAT: u64 = 9;
const PAYLOAD: u64 = 10;
/// Longer ones are not read.
const LONGEST_FORMAT: u64 = 64;

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;
const FIXED32: u64 = 5;

/// The payloads of all profiles of a file: of one message, or of several behind their lengths.
///
/// # Errors
/// If the file cannot be read, or holds something else.
pub fn find_payloads(file: &mut (impl BufRead + Seek)) -> Result<Vec<PayloadPlace>, PayloadError> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut found = Vec::new();
    for message in messages(file, length)? {
        file.seek(SeekFrom::Start(message.start))?;
        let mut walk = Walk { file, at: message.start };
        walk.message(message.end, 0, &mut found)?;
    }
    Ok(found)
}

/// Where the messages are. Lengths that lead exactly to the file's end are those of messages.
fn messages(file: &mut (impl BufRead + Seek), length: u64) -> io::Result<Vec<Range<u64>>> {
    let mut messages = Vec::new();
    let mut at = 0;
    while at < length {
        let mut prefix = [0; PREFIX];
        let start = at + PREFIX as u64;
        file.seek(SeekFrom::Start(at))?;
        let end = match length < start {
            true => u64::MAX,
            false => {
                file.read_exact(&mut prefix)?;
                start + u64::from(u32::from_be_bytes(prefix))
            }
        };
        if end > length {
            messages.clear();
            messages.push(0..length);
            break;
        }
        messages.push(start..end);
        at = end;
    }
    Ok(messages)
}

struct Walk<'f, F> {
    file: &'f mut F,
    at: u64,
}

impl<F: BufRead + Seek> Walk<'_, F> {
    fn varint(&mut self, end: u64) -> Result<u64, PayloadError> {
        let start = self.at;
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            if self.at >= end {
                break;
            }
            let mut byte = [0];
            self.file.read_exact(&mut byte)?;
            self.at += 1;
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                return Ok(value);
            }
        }
        Err(PayloadError::Malformed(start))
    }

    fn pass(&mut self, length: u64) -> io::Result<()> {
        self.at += length;
        // What is near is in the buffer already, which this keeps.
        match i64::try_from(length) {
            Ok(length) => self.file.seek_relative(length),
            Err(_) => self.file.seek(SeekFrom::Start(self.at)).map(drop),
        }
    }

    fn message(&mut self, end: u64, level: usize, found: &mut Vec<PayloadPlace>) -> Result<(), PayloadError> {
        let (mut format, mut payload) = (String::new(), None);
        while self.at < end {
            let start = self.at;
            let key = self.varint(end)?;
            let length = match key & 7 {
                VARINT => {
                    self.varint(end)?;
                    continue;
                }
                FIXED64 => 8,
                FIXED32 => 4,
                LENGTH_DELIMITED => self.varint(end)?,
                _ => return Err(PayloadError::Malformed(start)),
            };
            if key >> 3 == 0 || length > end - self.at {
                return Err(PayloadError::Malformed(start));
            }
            let field = (key & 7 == LENGTH_DELIMITED).then_some(key >> 3);
            match (PATH.get(level), field) {
                (Some(on), Some(field)) if *on == field => {
                    self.message(self.at + length, level + 1, found)?
                }
                (None, Some(FORMAT)) if length <= LONGEST_FORMAT => {
                    let mut bytes = Vec::new();
                    self.file.by_ref().take(length).read_to_end(&mut bytes)?;
                    self.at += length;
                    format = String::from_utf8_lossy(&bytes).into_owned();
                }
                (None, Some(PAYLOAD)) => {
                    payload = Some(self.at..self.at + length);
                    self.pass(length)?;
                }
                _ => self.pass(length)?,
            }
        }
        if let Some(bytes) = payload.filter(|bytes| !bytes.is_empty()) {
            found.push(PayloadPlace { format, bytes });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::wire::{Profile, ProfilesData, ResourceProfiles, ScopeProfiles};
    use super::*;
    use prost::Message as _;

    fn message(payloads: &[&[u8]]) -> Vec<u8> {
        let profile = |payload: &&[u8]| Profile {
            time_unix_nano: 7,
            original_payload_format: "jfr".into(),
            original_payload: payload.to_vec(),
            ..Profile::default()
        };
        let profiles = payloads.iter().map(profile).collect();
        let scope_profiles = vec![ScopeProfiles { profiles, ..ScopeProfiles::default() }];
        let resource_profiles = vec![ResourceProfiles { scope_profiles, ..ResourceProfiles::default() }];
        ProfilesData { resource_profiles, ..ProfilesData::default() }.encode_to_vec()
    }

    fn found(file: &[u8]) -> Vec<(String, Vec<u8>)> {
        let places = find_payloads(&mut Cursor::new(file)).unwrap();
        let bytes = |range: &Range<u64>| file[range.start as usize..range.end as usize].to_vec();
        places.iter().map(|place| (place.format.clone(), bytes(&place.bytes))).collect()
    }

    #[test]
    fn payloads_are_found_in_one_message_and_in_several() {
        let (one, two) = (message(&[b"FLR\0", b""]), message(&[b"x", &[9; 300]]));
        let jfr = |bytes: &[u8]| ("jfr".to_owned(), bytes.to_vec());
        assert_eq!(found(&one), [jfr(b"FLR\0")]);
        assert_eq!(found(&two), [jfr(b"x"), jfr(&[9; 300])]);
        let framed: Vec<u8> = [&one, &two]
            .into_iter()
            .flat_map(|message| [&(message.len() as u32).to_be_bytes()[..], message].concat())
            .collect();
        assert_eq!(found(&framed), [jfr(b"FLR\0"), jfr(b"x"), jfr(&[9; 300])]);
        assert_eq!(found(b""), []);
    }

    #[test]
    fn what_is_no_message_is_an_error_and_cut_ones_are() {
        let whole = message(&[b"FLR\0"]);
        for cut in 1..whole.len() {
            assert!(find_payloads(&mut Cursor::new(&whole[..cut])).is_err(), "{cut}");
        }
        assert!(matches!(find_payloads(&mut Cursor::new(b"FLR\0")), Err(PayloadError::Malformed(0))));
    }
}
