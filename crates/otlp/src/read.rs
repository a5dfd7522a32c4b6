//! Reads OTLP profile files of any form, and request bodies, from memory.
//!
//! In: the bytes of a file or of a request's body. Out: its messages one after another, decoded, each with
//! the oddities of its encoding. The messages before an error are delivered, then the error. A decoded
//! message takes up to about 40 times its encoded size. [`super::reader`] reads files as streams instead, and
//! leaves messages encoded.

use super::encoded::EncodedMessage;
use super::framing::Form;
use super::read_error::{ErrorKind, Notes, ReadError};
use super::read_json;
use super::reader::{Failure, Limits, Reader};
use super::wire::ProfilesData;

/// A message of a file, with its place in the file and the oddities of its encoding.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The content.
    pub data: ProfilesData,
    /// The message's position in the file, from 0.
    pub index: usize,
    /// The file's form.
    pub form: Form,
    /// The offset of the message's first byte in the file, after decompression and without the length prefix.
    pub offset: u64,
    /// Whether the file is compressed.
    pub compressed: bool,
    /// The message's encoded size, in bytes.
    pub size: u64,
    /// Oddities of the message's encoding.
    pub notes: Notes,
}

impl From<EncodedMessage> for Message {
    fn from(encoded: EncodedMessage) -> Self {
        let data = encoded.decode();
        let EncodedMessage { index, form, offset, compressed, size, notes, .. } = encoded;
        Self { data, index, form, offset, compressed, size, notes }
    }
}

/// Reads a file.
pub fn read(bytes: &[u8]) -> Messages<'_> {
    read_within(bytes, Limits::default())
}

/// Reads a file within the caller's limits.
pub fn read_within(bytes: &[u8], limits: Limits) -> Messages<'_> {
    Messages { reader: Reader::within(bytes, limits) }
}

/// Decodes the protobuf body of a request.
pub fn decode_protobuf(body: &[u8]) -> Result<Message, ReadError> {
    EncodedMessage::of_protobuf(body.to_vec()).map(Message::from)
}

/// Decodes the JSON body of a request, which is one document.
pub fn decode_json(body: &[u8]) -> Result<Message, ReadError> {
    encoded_json(body).map(Message::from)
}

/// Transcodes the JSON body of a request, which is one document, to protobuf.
///
/// # Errors
/// If the body is not one such document, or exceeds [`super::bounds`].
pub fn encoded_json(body: &[u8]) -> Result<EncodedMessage, ReadError> {
    let (bytes, notes, size) = read_json::transcode_first(body)?;
    if !body[size..].trim_ascii().is_empty() {
        let detail = "bytes after the end of the JSON document";
        return Err(ReadError::new(ErrorKind::JsonMalformed, size as u64, detail));
    }
    read_json::check(bytes, notes, size)
}

/// The messages of a file. The iterator ends after the first error.
#[derive(Debug)]
pub struct Messages<'a> {
    reader: Result<Reader<'a>, std::io::Error>,
}

impl Iterator for Messages<'_> {
    type Item = Result<Message, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.reader.as_mut().ok()?.next()? {
            Ok(message) => Some(Ok(message.into())),
            Err(Failure::Read(error)) => Some(Err(error)),
            // Reading from memory never fails.
            Err(Failure::Io(_)) => None,
        }
    }
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

    /// The messages delivered before the error, and the error.
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
    fn messages_before_an_error_are_delivered() {
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
        let mut messages = read_within(&bomb, Limits { max_bytes: 1 << 10, ..Limits::default() });
        let error = messages.find_map(Result::err).unwrap();
        assert_eq!((error.kind, error.offset), (ErrorKind::TooLarge, 1 << 10));
    }

    #[test]
    fn an_error_is_one_line() {
        let error = all(&[0, 0, 0, 9, 1]).1.unwrap();
        assert_eq!(
            error.to_string(),
            "truncated: a message of 9 bytes is announced and 1 follow at byte 0 (message 0) \
             [frame-truncated]"
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
