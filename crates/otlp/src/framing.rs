//! The layout of messages in a file: which form the file has, and where each message begins and ends.
//!
//! | Form | Written by |
//! |---|---|
//! | one protobuf message | async-profiler, `file=` with %t |
//! | big-endian u32 length + message, repeated | the collector's file exporter, `file=` without %t |
//! | JSON documents, with any white space between them | the collector's file exporter, `format=json` |
//! | any of the above, gzipped | |

use super::read_error::{ErrorKind, ReadError};
use super::read_protobuf;

/// The form of a file that is not compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One protobuf message.
    Plain,
    /// Protobuf messages, each preceded by its length.
    LengthPrefixed,
    /// JSON documents.
    Json,
}

/// Bytes of a length prefix.
pub(super) const PREFIX: usize = 4;

/// Whether these are the first bytes of a gzip stream (RFC 1952, 2.3.1).
pub fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// Detects the form of a file by its first bytes.
///
/// A plain message begins with the key of field 1 or 2, 0x0a or 0x12. The first byte of a length prefix is 0
/// for lengths below 16 MiB. The bytes 0 to 7 never begin a message, since no field has number 0. As a key,
/// `{` would be field 15 as a group. Two cases stay ambiguous: a line feed before `{`, and a length of 160
/// MiB or more. For these the whole file decides.
pub(super) fn detect(bytes: &[u8]) -> Result<Form, ReadError> {
    let text = bytes.trim_ascii_start();
    match bytes.first() {
        None => Ok(Form::LengthPrefixed),
        Some(b'{') => Ok(Form::Json),
        Some(0..=7) => Ok(Form::LengthPrefixed),
        Some(_) if text.first() == Some(&b'{') && !read_protobuf::looks_like_message(bytes) => Ok(Form::Json),
        Some(_) if frames_fit(bytes) => Ok(Form::LengthPrefixed),
        Some(0x0a | 0x12) => Ok(Form::Plain),
        Some(_) if read_protobuf::looks_like_message(bytes) => Ok(Form::Plain),
        Some(_) => Err(ReadError::new(ErrorKind::UnknownFormat, 0, unknown(bytes))),
    }
}

/// Detects the form of a file only by its first bytes; `None` where the whole file must decide. `whole` says
/// that the file has no further bytes.
pub(super) fn detect_by_first(first: &[u8], whole: bool) -> Option<Result<Form, ReadError>> {
    if whole {
        return Some(detect(first));
    }
    let text = first.trim_ascii_start();
    match first[0] {
        b'{' => Some(Ok(Form::Json)),
        0..=7 => Some(Ok(Form::LengthPrefixed)),
        // No protobuf message begins with so much text: its keys and lengths include bytes that are not text.
        _ if text.first() == Some(&b'{') && is_text(first) => Some(Ok(Form::Json)),
        0x0a | 0x12 => None,
        _ if may_begin_otherwise(first) => None,
        _ => Some(Err(ReadError::new(ErrorKind::UnknownFormat, 0, unknown(first)))),
    }
}

/// Whether the bytes are UTF-8 text. The last character may be cut off.
fn is_text(bytes: &[u8]) -> bool {
    let is_control = |byte: &u8| *byte < b' ' && !byte.is_ascii_whitespace();
    let is_utf8 = std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true);
    is_utf8 && !bytes.iter().any(is_control)
}

/// Whether a file that begins with neither a usual key nor a usual length may still hold messages: the first
/// length may be 128 MiB or more, or the message may begin with unknown fields.
fn may_begin_otherwise(first: &[u8]) -> bool {
    let after_length = first.get(PREFIX).is_some_and(|key| [0x0a, 0x12].contains(key));
    after_length || read_protobuf::begins_like_message(first)
}

/// Whether a file with these first bytes may hold protobuf messages; for the reason see [`detect`].
pub(super) fn may_be_protobuf(first: &[u8]) -> bool {
    matches!(first.first(), Some(0..=7 | 0x0a | 0x12))
}

/// An error text that names the file's actual type where the first bytes reveal it.
pub(super) fn unknown(bytes: &[u8]) -> String {
    let what = match bytes {
        [b'F', b'L', b'R', 0, ..] => "a JFR recording",
        [0x7f, b'E', b'L', b'F', ..] => "an ELF object",
        [b'P', b'K', 3, 4, ..] => "a ZIP archive",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "compressed with zstd",
        _ => "in no known format",
    };
    format!("not an OTLP profile: the file is {what}")
}

/// Whether the length prefixes end exactly at the last byte, and each delimits a message.
fn frames_fit(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Ok(Some(frame)) = next_frame(rest) {
        if !read_protobuf::looks_like_message(frame.message) {
            return false;
        }
        rest = frame.rest;
    }
    rest.is_empty()
}

/// A length-prefixed message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PrefixedMessage<'a> {
    /// The message.
    pub(super) message: &'a [u8],
    /// The bytes after the message.
    pub(super) rest: &'a [u8],
}

/// The first of several length-prefixed messages; `None` at the end. The error is the text of a message.
pub(super) fn next_frame(bytes: &[u8]) -> Result<Option<PrefixedMessage<'_>>, String> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let Some((prefix, rest)) = bytes.split_first_chunk::<PREFIX>() else {
        return Err(format!("truncated: {} of the {PREFIX} bytes of a length prefix", bytes.len()));
    };
    let length = u32::from_be_bytes(*prefix);
    match usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length)) {
        Some((message, rest)) => Ok(Some(PrefixedMessage { message, rest })),
        None => Err(format!("truncated: a message of {length} bytes is announced and {} follow", rest.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(message: &[u8]) -> Vec<u8> {
        [&u32::try_from(message.len()).unwrap().to_be_bytes()[..], message].concat()
    }

    #[test]
    fn each_form_is_detected() {
        let message = [0x12, 2, 0x2a, 0];
        assert_eq!(detect(&message), Ok(Form::Plain));
        assert_eq!(detect(&framed(&message)), Ok(Form::LengthPrefixed));
        assert_eq!(detect(&framed(&[])), Ok(Form::LengthPrefixed));
        assert_eq!(detect(&[]), Ok(Form::LengthPrefixed));
        assert_eq!(detect(b"{}"), Ok(Form::Json));
        assert_eq!(detect(b" \r\n\t{}"), Ok(Form::Json));
        assert_eq!(detect(b"\n{\"dictionary\":{}}"), Ok(Form::Json));
    }

    #[test]
    fn a_message_that_begins_like_json_is_none() {
        // Field 1 of 123 bytes; the length byte 0x7b is `{`.
        let message = [&[0x0a, b'{'][..], &[0x1a, 121], &[0; 121]].concat();
        assert_eq!(detect(&message), Ok(Form::Plain));
    }

    #[test]
    fn bytes_of_another_form_are_named() {
        for (bytes, what) in [
            (&b"FLR\0\0\x02"[..], "a JFR recording"),
            (b"\x7fELF\x02", "an ELF object"),
            (b"hello", "in no known format"),
        ] {
            let error = detect(bytes).unwrap_err();
            assert_eq!(error.kind, ErrorKind::UnknownFormat);
            assert!(error.detail.ends_with(what), "{error}");
        }
    }

    #[test]
    fn frames_are_cut_at_their_lengths() {
        let file = [framed(b"one"), framed(b"")].concat();
        let first = next_frame(&file).unwrap().unwrap();
        assert_eq!(first.message, b"one");
        let second = next_frame(first.rest).unwrap().unwrap();
        assert_eq!((second.message, next_frame(second.rest)), (&b""[..], Ok(None)));
        assert!(next_frame(&file[..5]).unwrap_err().contains("3 bytes is announced and 1 follow"));
        assert!(next_frame(&file[..2]).unwrap_err().contains("2 of the 4 bytes of a length prefix"));
        assert!(next_frame(&[0xff; 8]).is_err());
    }
}
