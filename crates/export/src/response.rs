//! Reads collectors' answers, as far as needed: partial successes and the text of errors.
//!
//! The two messages are small (`ExportProfilesServiceResponse` of OTLP and `google.rpc.Status`), so they are
//! read here field by field. Bytes that do not decode count as absent.

use serde_json::Value;

use super::notice::printable;
use super::stats::PartialSuccess;

/// Reads `ExportProfilesServiceResponse.partial_success`. Returns `None` if the field is absent or has only
/// defaults.
pub(super) fn partial_success(mime: &str, body: &[u8]) -> Option<PartialSuccess> {
    let partial = if is_json(mime) {
        let document: Value = serde_json::from_slice(body).ok()?;
        let partial = document.get("partialSuccess")?;
        PartialSuccess {
            rejected_profiles: partial.get("rejectedProfiles").map_or(0, json_int64),
            error_message: printable(partial.get("errorMessage").and_then(Value::as_str).unwrap_or_default()),
        }
    } else {
        let mut partial = PartialSuccess::default();
        let message = Fields(body).find_map(|field| field.bytes(1))?;
        for field in Fields(message) {
            if let Field::Varint(1, rejected) = field {
                partial.rejected_profiles = rejected.cast_signed();
            } else if let Some(text) = field.bytes(2) {
                partial.error_message = printable(&String::from_utf8_lossy(text));
            }
        }
        partial
    };
    (partial != PartialSuccess::default()).then_some(partial)
}

/// Describes a successful answer that is not one of OTLP/HTTP ("OTLP/HTTP Response": protobuf or JSON, and
/// the content type says which). Returns `None` if the answer is one, or has no body. A body that is not
/// `whole` is judged only by its type.
pub(super) fn foreign(mime: &str, body: &[u8], whole: bool) -> Option<String> {
    let kind = mime.split(';').next().unwrap_or_default().trim();
    let is_protobuf = ["application/x-protobuf", "application/protobuf"].contains(&kind);
    if body.is_empty() && whole {
        None
    } else if kind.is_empty() {
        Some("a body without a content type".to_owned())
    } else if !is_protobuf && kind != "application/json" {
        Some(printable(kind))
    } else {
        let decodes = || match is_protobuf {
            true => Fields(body).are_whole(),
            false => serde_json::from_slice(body).is_ok_and(|document: Value| document.is_object()),
        };
        (whole && !decodes()).then(|| format!("{kind} that cannot be decoded"))
    }
}

/// Reads the text of an error answer: `google.rpc.Status.message`, or the body if it is plain text.
pub(super) fn error_message(mime: &str, body: &[u8]) -> String {
    let text = if is_json(mime) {
        let document: Option<Value> = serde_json::from_slice(body).ok();
        document.and_then(|document| Some(document.get("message")?.as_str()?.to_owned()))
    } else if mime.starts_with("text/") {
        Some(String::from_utf8_lossy(body).into_owned())
    } else {
        let message = Fields(body).find_map(|field| field.bytes(2));
        message.map(|message| String::from_utf8_lossy(message).into_owned())
    };
    printable(&text.unwrap_or_default())
}

/// Whether the body of a 400 says that the port speaks TLS. Servers answer so that receive plain HTTP in
/// place of a handshake. (Go's net/http, and so the OpenTelemetry collector: "Client sent an HTTP request to
/// an HTTPS server."; nginx: "The plain HTTP request was sent to HTTPS port"; Apache: "speaking plain HTTP to
/// an SSL-enabled server port".)
pub(super) fn mentions_tls(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body).to_ascii_lowercase();
    [
        "http request to an https server",
        "plain http request was sent to https port",
        "plain http to an ssl-enabled server",
    ]
    .iter()
    .any(|words| text.contains(words))
}

/// Whether the text of a 400 says that the request was over a size limit. Some collectors answer 400 then,
/// although HTTP has 413 for it. (Go's `http.MaxBytesReader`, which the OpenTelemetry collector uses, says
/// "request body too large".)
pub(super) fn mentions_size_limit(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    let has = |words: &str| message.contains(words);
    has("too large")
        || has("too big")
        || has("size limit")
        || (has("exceed") && (has("size") || has("limit") || has("max")))
}

fn is_json(mime: &str) -> bool {
    mime.starts_with("application/json")
}

/// A 64-bit integer of OTLP/JSON: a decimal string, or a number.
fn json_int64(value: &Value) -> i64 {
    value.as_i64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(0)
}

/// One field of a protobuf message: its number and its value.
enum Field<'a> {
    Varint(u64, u64),
    Bytes(u64, &'a [u8]),
    Fixed,
}

impl<'a> Field<'a> {
    /// The value, if the field is length-delimited and has this number.
    fn bytes(&self, wanted: u64) -> Option<&'a [u8]> {
        match *self {
            Self::Bytes(number, bytes) if number == wanted => Some(bytes),
            _ => None,
        }
    }
}

/// The fields of a protobuf message, up to the first malformed one.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let key = self.varint()?;
        match key & 7 {
            0 => Some(Field::Varint(key >> 3, self.varint()?)),
            1 => self.bytes(8).map(|_| Field::Fixed),
            2 => {
                let length = self.varint()?;
                Some(Field::Bytes(key >> 3, self.bytes(usize::try_from(length).ok()?)?))
            }
            5 => self.bytes(4).map(|_| Field::Fixed),
            _ => None,
        }
    }
}

impl<'a> Fields<'a> {
    /// Whether the message consists of well-formed fields to its end.
    fn are_whole(mut self) -> bool {
        while !self.0.is_empty() {
            if self.next().is_none() {
                return false;
            }
        }
        true
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.bytes(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTOBUF: &str = "application/x-protobuf";
    const JSON: &str = "application/json; charset=utf-8";

    fn partial(rejected_profiles: i64, error_message: &str) -> Option<PartialSuccess> {
        Some(PartialSuccess { rejected_profiles, error_message: error_message.to_owned() })
    }

    #[test]
    fn partial_successes_of_both_encodings() {
        // partial_success { rejected_profiles: 300, error_message: "no" }, after an unknown fixed64 field.
        let body = [0x49, 1, 2, 3, 4, 5, 6, 7, 8, 0x0a, 7, 0x08, 0xac, 0x02, 0x12, 2, b'n', b'o'];
        assert_eq!(partial_success(PROTOBUF, &body), partial(300, "no"));
        let body = br#"{"partialSuccess":{"rejectedProfiles":"300","errorMessage":"no"}}"#;
        assert_eq!(partial_success(JSON, body), partial(300, "no"));
        let body = br#"{"partialSuccess":{"rejectedProfiles":3}}"#;
        assert_eq!(partial_success(JSON, body), partial(3, ""));
    }

    #[test]
    fn full_successes_and_garbage_are_no_partial_ones() {
        for body in [&b""[..], &[0x0a, 0], &[0x0a, 2, 0x08, 0], &[0x0a, 200], &[0x0f], &[0xff; 20]] {
            assert_eq!(partial_success(PROTOBUF, body), None, "{body:?}");
        }
        for body in ["", "{}", r#"{"partialSuccess":{}}"#, "[1", r#"{"partialSuccess":7}"#] {
            assert_eq!(partial_success(JSON, body.as_bytes()), None, "{body}");
        }
    }

    #[test]
    fn error_texts_of_all_encodings() {
        let status = [0x08, 3, 0x12, 3, b'b', b'a', b'd'];
        assert_eq!(error_message(PROTOBUF, &status), "bad");
        assert_eq!(error_message(JSON, br#"{"code":3,"message":"bad"}"#), "bad");
        assert_eq!(error_message("text/plain", b"404 page\nnot found\n"), "404 page not found");
        assert_eq!(error_message("", b""), "");
        assert_eq!(error_message(JSON, b"<html>"), "");
    }

    #[test]
    fn texts_about_a_size_limit() {
        for text in [
            "http: request body too large",
            "Request exceeds the maximum of 20 MiB",
            "size limit was exceeded",
            "Body too big",
        ] {
            assert!(mentions_size_limit(text), "{text}");
        }
        for text in ["", "unexpected end of input", "dictionary index out of range", "sizes differ"] {
            assert!(!mentions_size_limit(text), "{text}");
        }
    }
}
