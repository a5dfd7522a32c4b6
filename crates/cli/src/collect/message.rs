//! HTTP requests and answers as plain data.

use prost::Message as _;
use serde_json::json;

use otlpprof_otlp::wire::{ExportProfilesServiceResponse, Status};

/// The encoding of a request's body, and of its answer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Protobuf,
    Json,
}

impl Encoding {
    pub(super) const fn mime(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }
}

/// The size of a request's body according to the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodySize {
    Bytes(u64),
    Chunked,
}

/// A request without its body.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) method: String,
    /// The path without the query.
    pub(super) path: String,
    /// Names in lower case, values without surrounding blanks.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: BodySize,
    pub(super) keep_alive: bool,
    pub(super) expects_continue: bool,
}

impl Head {
    /// The values of a header, in order.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(super) status: u16,
    /// Header lines beyond the ones that every answer has.
    pub(super) headers: &'static str,
    pub(super) mime: &'static str,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// 200: the request was accepted as a whole, so `partial_success` is not set.
    pub(crate) fn accepted(encoding: Encoding) -> Self {
        let body = match encoding {
            Encoding::Protobuf => ExportProfilesServiceResponse::default().encode_to_vec(),
            Encoding::Json => b"{}".to_vec(),
        };
        Self { status: 200, headers: "", mime: encoding.mime(), body }
    }

    /// An error as `google.rpc.Status` in the encoding of the request.
    pub(crate) fn error(encoding: Encoding, status: u16, message: &str) -> Self {
        let code = grpc_code(status);
        let body = match encoding {
            Encoding::Protobuf => {
                Status { code, message: message.to_owned(), details: Vec::new() }.encode_to_vec()
            }
            Encoding::Json => json!({ "code": code, "message": message }).to_string().into_bytes(),
        };
        // Tells the client to wait before it retries. An immediate retry would be too soon.
        let headers = if status == 503 { "Retry-After: 1\r\n" } else { "" };
        Self { status, headers, mime: encoding.mime(), body }
    }

    /// An error for a request of an encoding that is not known yet.
    pub(super) fn plain(status: u16, headers: &'static str, message: &str) -> Self {
        let body = format!("{message}\n").into_bytes();
        Self { status, headers, mime: "text/plain; charset=utf-8", body }
    }

    /// The bytes to send.
    pub(super) fn to_bytes(&self, close: bool) -> Vec<u8> {
        let connection = if close { "Connection: close\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}{connection}\r\n",
            self.status,
            reason(self.status),
            self.mime,
            self.body.len(),
            self.headers,
        );
        [head.as_bytes(), &self.body].concat()
    }
}

/// The gRPC code that corresponds to an HTTP status (`google/rpc/code.proto`).
const fn grpc_code(status: u16) -> i32 {
    match status {
        400 | 413 | 415 => 3,
        503 => 14,
        _ => 13,
    }
}

const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "Error",
    }
}
