//! Reading OTLP profile files of any form, and request bodies.
//!
//! In: the bytes of a file or of a request's body. Out: its messages one after the other, each with what was
//! odd about it, and one error where reading had to stop; messages before the error are delivered. Memory is
//! bounded by what is there: one message is decoded at a time, no declared length is allocated before its bytes
//! are seen, and decompression stops at a limit. A decoded message takes up to some 40 times its encoded size
//! (an empty Location is 2 bytes and becomes 72).

use std::borrow::Cow;

use super::framing::{self, Form, PREFIX};
use super::read_error::{BytePlace, ErrorKind, Notes, ReadError};
use super::wire::ProfilesData;
use super::{read_json, read_protobuf};

/// How much is read.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most bytes that a compressed file may have after decompression.
    pub max_bytes: usize,
}

impl Default for Limits {
    /// 1 GiB.
    fn default() -> Self {
        Self { max_bytes: 1 << 30 }
    }
}

/// A message of a file, and what was seen while it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its content.
    pub data: ProfilesData,
    /// Which message of the file it is, from 0.
    pub index: usize,
    /// The file's form.
    pub form: Form,
    /// Where its first byte is, after decompression and without its length prefix.
    pub offset: u64,
    /// Whether the file is compressed.
    pub compressed: bool,
    /// Its encoded size in bytes.
    pub size: u64,
    /// What is odd about its encoding.
    pub notes: Notes,
}

impl Message {
    /// Where a byte of it is in the file, for people.
    pub(crate) fn place(&self, offset: u64) -> BytePlace {
        BytePlace { offset: self.offset + offset, compressed: self.compressed }
    }
}

/// Reads a file.
pub fn read(bytes: &[u8]) -> Messages<'_> {
    read_within(bytes, Limits::default())
}

/// Reads a file within limits of the caller's.
pub fn read_within(bytes: &[u8], limits: Limits) -> Messages<'_> {
    let compressed = framing::is_gzip(bytes);
    let (bytes, broken) = if compressed {
        let (bytes, broken) = framing::gunzip(bytes, limits.max_bytes);
        (Cow::Owned(bytes), broken)
    } else {
        (Cow::Borrowed(bytes), None)
    };
    Messages { bytes, at: 0, index: 0, form: None, compressed, broken, done: false }
}

/// Decodes the protobuf body of a request.
pub fn decode_protobuf(body: &[u8]) -> Result<Message, ReadError> {
    let (data, notes) = read_protobuf::decode(body)?;
    let (form, size) = (Form::Plain, body.len() as u64);
    Ok(Message { data, index: 0, form, offset: 0, compressed: false, size, notes })
}

/// Decodes the JSON body of a request, which is one document.
pub fn decode_json(body: &[u8]) -> Result<Message, ReadError> {
    let (data, notes, size) = read_json::decode_first(body)?;
    if !body[size..].trim_ascii().is_empty() {
        let detail = "bytes after the end of the JSON document";
        return Err(ReadError::new(ErrorKind::JsonMalformed, size as u64, detail));
    }
    let (form, size) = (Form::Json, size as u64);
    Ok(Message { data, index: 0, form, offset: 0, compressed: false, size, notes })
}

/// The messages of a file. It ends after the first error.
#[derive(Debug)]
pub struct Messages<'a> {
    bytes: Cow<'a, [u8]>,
    at: usize,
    index: usize,
    form: Option<Form>,
    compressed: bool,
    /// Why decompression stopped early. It explains the truncation that is met at the end.
    broken: Option<ReadError>,
    done: bool,
}

impl Iterator for Messages<'_> {
    type Item = Result<Message, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let result = self.step().transpose();
        if let Some(Ok(_)) = result {
            self.index += 1;
            return result;
        }
        self.done = true;
        let error = match (self.broken.take(), result) {
            (Some(broken), _) => broken,
            (None, Some(Err(error))) => error,
            (None, _) => return None,
        };
        Some(Err(ReadError { compressed: self.compressed, message: self.index, ..error }))
    }
}

impl Messages<'_> {
    fn step(&mut self) -> Result<Option<Message>, ReadError> {
        let form = match self.form {
            Some(form) => form,
            None => *self.form.insert(framing::detect(&self.bytes)?),
        };
        let rest = &self.bytes[self.at..];
        let (data, notes, offset, size) = match form {
            Form::Plain if rest.is_empty() => return Ok(None),
            Form::Plain => {
                let (data, notes) = read_protobuf::decode(rest)?;
                (data, notes, self.at, rest.len())
            }
            Form::LengthPrefixed => {
                let frame = framing::next_frame(rest)
                    .map_err(|detail| ReadError::new(ErrorKind::FrameTruncated, self.at as u64, detail))?;
                let Some(frame) = frame else { return Ok(None) };
                let start = self.at + PREFIX;
                let (data, notes) =
                    read_protobuf::decode(frame.message).map_err(|error| shift(error, start))?;
                (data, notes, start, frame.message.len())
            }
            Form::Json => {
                let text = rest.trim_ascii_start();
                if text.is_empty() {
                    return Ok(None);
                }
                let start = self.bytes.len() - text.len();
                let (data, notes, size) =
                    read_json::decode_first(text).map_err(|error| shift(error, start))?;
                (data, notes, start, size)
            }
        };
        self.at = offset + size;
        let (index, compressed, offset, size) = (self.index, self.compressed, offset as u64, size as u64);
        Ok(Some(Message { data, index, form, offset, compressed, size, notes }))
    }
}

/// The error of a message as an error of its file.
fn shift(error: ReadError, start: usize) -> ReadError {
    ReadError { offset: error.offset + start as u64, ..error }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use prost::Message as _;

    use super::super::wire::ProfilesDictionary;
    use super::*;

    fn data(text: &str) -> ProfilesData {
        let dictionary = ProfilesDictionary { string_table: vec![text.into()], ..Default::default() };
        ProfilesData { dictionary: Some(dictionary), ..Default::default() }
    }

    fn framed(data: &ProfilesData) -> Vec<u8> {
        let message = data.encode_to_vec();
        [&u32::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    /// What was delivered before the error, and the error.
    fn all(bytes: &[u8]) -> (Vec<ProfilesData>, Option<ReadError>) {
        let mut messages = read(bytes);
        let mut delivered = Vec::new();
        for message in &mut messages {
            match message {
                Ok(message) => delivered.push(message.data),
                Err(error) => {
                    assert!(messages.next().is_none(), "reading ends with the error");
                    return (delivered, Some(error));
                }
            }
        }
        (delivered, None)
    }

    #[test]
    fn every_form_is_read() {
        let (one, two) = (data("one"), data("two"));
        let both = vec![one.clone(), two.clone()];
        let json = |text| format!(r#"{{"dictionary":{{"stringTable":["{text}"]}}}}"#);
        let lines = format!("{}\n{}\n", json("one"), json("two"));
        let frames = [framed(&one), framed(&two)].concat();
        assert_eq!(all(&one.encode_to_vec()), (vec![one.clone()], None));
        assert_eq!(all(&frames), (both.clone(), None));
        assert_eq!(all(lines.as_bytes()), (both.clone(), None));
        assert_eq!(all(&gzip(&frames)), (both.clone(), None));
        assert_eq!(all(&[gzip(&framed(&one)), gzip(&framed(&two))].concat()), (both, None));
        assert_eq!(all(b""), (vec![], None));
    }

    #[test]
    fn places_are_those_in_the_file() {
        let frames = [framed(&data("one")), framed(&data("three"))].concat();
        let places: Vec<_> = read(&frames)
            .map(|message| message.map(|message| (message.index, message.offset, message.size)).unwrap())
            .collect();
        assert_eq!(places, [(0, 4, 7), (1, 15, 9)]);
    }

    #[test]
    fn what_precedes_an_error_is_delivered() {
        let (one, two) = (data("one"), data("two"));
        let frames = [framed(&one), framed(&two)].concat();
        let second = framed(&one).len();

        let (delivered, error) = all(&frames[..frames.len() - 1]);
        let error = error.unwrap();
        assert_eq!((delivered, error.kind), (vec![one.clone()], ErrorKind::FrameTruncated));
        assert_eq!((error.offset, error.message), (second as u64, 1));

        let mut corrupt = frames.clone();
        *corrupt.last_mut().unwrap() = 0xff;
        let (delivered, error) = all(&corrupt);
        let error = error.unwrap();
        assert_eq!((delivered, error.kind), (vec![one.clone()], ErrorKind::WireUtf8));
        assert_eq!((error.offset, error.message), (corrupt.len() as u64 - 1, 1));

        let (delivered, error) = all(b"{}\n{\"dictionary\":");
        assert_eq!(delivered, [ProfilesData::default()]);
        assert_eq!(error.unwrap().offset, 16);

        let compressed = gzip(&frames);
        let (delivered, error) = all(&compressed[..compressed.len() - 10]);
        let error = error.unwrap();
        assert!(delivered.len() <= 1 && error.compressed, "{error}");
        assert_eq!(error.kind, ErrorKind::GzipCorrupt);
    }

    #[test]
    fn decompression_is_limited() {
        let bomb = gzip(&vec![0; 1 << 20]);
        let mut messages = read_within(&bomb, Limits { max_bytes: 1 << 10 });
        let error = messages.find_map(Result::err).unwrap();
        assert_eq!((error.kind, error.offset), (ErrorKind::TooLarge, 1 << 10));
    }

    #[test]
    fn an_error_is_one_line() {
        let error = all(&[0, 0, 0, 9, 1]).1.unwrap();
        assert_eq!(
            error.to_string(),
            "truncated: a message of 9 bytes is announced and 1 follow at byte 0 (message 0) [frame-truncated]"
        );
    }

    #[test]
    fn bodies_are_one_message() {
        let one = data("one");
        assert_eq!(decode_protobuf(&one.encode_to_vec()).unwrap().data, one);
        assert_eq!(decode_json(b" {} \n").unwrap().data, ProfilesData::default());
        assert_eq!(decode_json(b"{} {}").unwrap_err().kind, ErrorKind::JsonMalformed);
    }
}
