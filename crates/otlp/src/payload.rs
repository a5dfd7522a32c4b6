//! Finds the original payloads of a file, which may be far larger than memory. In protobuf messages they are
//! found by seeking; JSON (`json_payload`) is scanned as a stream.

use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};

use super::found_payloads::{FoundPayloads, LONGEST_FORMAT, PayloadError, PayloadPlace};
use super::framing::{PREFIX, may_be_protobuf, unknown};
use super::json_payload;

/// The field numbers on the path from ProfilesData to a profile: resource_profiles, scope_profiles, profiles.
const PATH: [u64; 3] = [1, 2, 2];
const FORMAT: u64 = 9;
const PAYLOAD: u64 = 10;

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;
const FIXED32: u64 = 5;

/// The number of first bytes that the file's form is detected by.
const FORM_PREFIX_LEN: u64 = 64;

/// Finds the payloads of all profiles of an uncompressed file. The file holds one protobuf message, several
/// messages that are each preceded by their length, or JSON documents.
///
/// # Errors
/// If the file cannot be read or holds anything else.
pub fn find_payloads(file: &mut (impl BufRead + Seek)) -> Result<Vec<PayloadPlace>, PayloadError> {
    let mut first = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.by_ref().take(FORM_PREFIX_LEN).read_to_end(&mut first)?;
    let text = first.trim_ascii_start();
    let json = |file: &mut _| {
        Seek::seek(file, SeekFrom::Start(0))?;
        json_payload::find(file)
    };
    let found = match (first.first(), text.first()) {
        (Some(b'{'), _) => json(file),
        // A protobuf message may begin with a line feed too (the key 0x0a), and a first field of 123 bytes
        // continues with `{`.
        (_, Some(b'{') | None) => match find_in_protobuf(file) {
            Err(PayloadError::Malformed(_)) => json(file),
            found => found,
        },
        _ => match find_in_protobuf(file) {
            Err(PayloadError::Malformed(_)) if !may_be_protobuf(&first) => {
                Err(PayloadError::UnknownFormat(unknown(&first)))
            }
            found => found,
        },
    };
    found.map(FoundPayloads::into_places)
}

/// Copies a payload out of the file.
///
/// # Errors
/// If the file cannot be read or has become shorter, if the payload should be base64 and is not, or if `to`
/// fails.
pub fn copy_payload(
    file: &mut (impl BufRead + Seek),
    place: &PayloadPlace,
    to: &mut dyn Write,
) -> io::Result<()> {
    file.seek(SeekFrom::Start(place.bytes.start))?;
    let mut bytes = file.take(place.bytes.end - place.bytes.start);
    match place.is_base64 {
        true => json_payload::copy_decoded(&mut bytes, to)?,
        false => drop(io::copy(&mut bytes, to)?),
    }
    if bytes.limit() == 0 { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn find_in_protobuf(file: &mut (impl BufRead + Seek)) -> Result<FoundPayloads, PayloadError> {
    let length = file.seek(SeekFrom::End(0))?;
    let is_framed = lengths_fit(file, length)?;
    file.seek(SeekFrom::Start(0))?;
    let mut walk = Walk { file, at: 0, found: FoundPayloads::default() };
    if !is_framed {
        walk.message(length, 0)?;
    }
    while walk.at < length {
        let message = walk.prefix()?;
        walk.message(walk.at + message, 0)?;
    }
    Ok(walk.found)
}

/// Whether the file is a sequence of messages with length prefixes, the last of which ends at the file's end.
fn lengths_fit(file: &mut (impl BufRead + Seek), length: u64) -> io::Result<bool> {
    file.seek(SeekFrom::Start(0))?;
    let mut walk = Walk { file, at: 0, found: FoundPayloads::default() };
    while walk.at < length {
        if length - walk.at < PREFIX as u64 {
            return Ok(false);
        }
        let message = walk.prefix()?;
        if message > length - walk.at {
            return Ok(false);
        }
        walk.pass(message)?;
    }
    Ok(true)
}

struct Walk<'f, F> {
    file: &'f mut F,
    at: u64,
    found: FoundPayloads,
}

impl<F: BufRead + Seek> Walk<'_, F> {
    /// Reads the length prefix of the next message.
    fn prefix(&mut self) -> io::Result<u64> {
        let mut prefix = [0; PREFIX];
        self.file.read_exact(&mut prefix)?;
        self.at += PREFIX as u64;
        Ok(u32::from_be_bytes(prefix).into())
    }

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
        // A relative seek keeps the buffer, which often holds the target already.
        match i64::try_from(length) {
            Ok(length) => self.file.seek_relative(length),
            Err(_) => self.file.seek(SeekFrom::Start(self.at)).map(drop),
        }
    }

    fn message(&mut self, end: u64, level: usize) -> Result<(), PayloadError> {
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
                (Some(on), Some(field)) if *on == field => self.message(self.at + length, level + 1)?,
                (None, Some(FORMAT)) if length <= LONGEST_FORMAT as u64 => {
                    let mut bytes = Vec::new();
                    self.file.by_ref().take(length).read_to_end(&mut bytes)?;
                    self.at += length;
                    format = String::from_utf8_lossy(&bytes).into_owned();
                }
                (None, Some(FORMAT)) => {
                    format.clear();
                    self.pass(length)?;
                }
                (None, Some(PAYLOAD)) => {
                    payload = Some(self.at..self.at + length);
                    self.pass(length)?;
                }
                _ => self.pass(length)?,
            }
        }
        payload.map_or(Ok(()), |bytes| self.found.add(format, bytes, false))
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
        let mut file = Cursor::new(file);
        let places = find_payloads(&mut file).unwrap();
        let mut bytes = |place: &PayloadPlace| {
            let mut bytes = Vec::new();
            copy_payload(&mut file, place, &mut bytes).unwrap();
            bytes
        };
        places.iter().map(|place| (place.format.clone(), bytes(place))).collect()
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
    fn payloads_of_json_are_found_and_decoded() {
        let text = br#" {"resourceProfiles":[{"scopeProfiles":[{"profiles":[
            {"originalPayload":"RkxSAA==","originalPayloadFormat":"jfr"}]}]}]}"#;
        assert_eq!(found(text), [("jfr".to_owned(), b"FLR\0".to_vec())]);
    }

    #[test]
    fn a_file_that_has_become_shorter_is_an_error() {
        let file = message(&[b"FLR\0"]);
        let place = &find_payloads(&mut Cursor::new(&file)).unwrap()[0];
        let cut = &file[..place.bytes.end as usize - 1];
        let error = copy_payload(&mut Cursor::new(cut), place, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    /// `resource_profiles` of 123 bytes, so that the length byte is `{`.
    #[test]
    fn a_message_that_begins_like_json_is_none() {
        let begin = |bytes: usize| message(&[&vec![7; bytes]]);
        let whole = (1..123).map(begin).find(|whole| whole[1] == b'{').unwrap();
        assert!(whole.starts_with(b"\n{"));
        let payload = found(&whole).remove(0).1;
        assert!(payload.len() > 50 && payload.iter().all(|&byte| byte == 7));
    }

    #[test]
    fn a_file_without_profiles_is_described() {
        let error = |file: &[u8]| find_payloads(&mut Cursor::new(file)).unwrap_err().to_string();
        assert_eq!(error(b"FLR\0\0\x02\0\0"), "not an OTLP profile: the file is a JFR recording");
        assert_eq!(error(b"hello"), "not an OTLP profile: the file is in no known format");
    }

    #[test]
    fn a_truncated_message_is_an_error() {
        let whole = message(&[b"FLR\0"]);
        // Not tested is a message cut to its first byte: that byte is also JSON text without documents.
        for cut in 2..whole.len() {
            assert!(find_payloads(&mut Cursor::new(&whole[..cut])).is_err(), "{cut}");
        }
    }
}
