//! The rules of OTLP/HTTP for profiles: which requests are accepted, and how the others are answered. Does no
//! input or output.

use std::io::Read;

use flate2::read::{MultiGzDecoder, ZlibDecoder};
use otlpprof_model::attribute_keys::SERVICE_NAME;
use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_otlp::encoded_profiles::{EncodedResource, EncodedScope};
use otlpprof_otlp::lookup::DictionaryTables as _;
use otlpprof_otlp::read;
use otlpprof_otlp::read_error::{ErrorKind, ReadError};
use otlpprof_report::sample_count::sample_count;

use super::message::{Answer, Encoding, Head};

const PATH: &str = "/v1development/profiles";
const VERSION_HEADER: &str = "otlp-profiles-development-version";
/// The limit of OpenTelemetry collectors in bytes, before and after decompression.
pub(super) const BODY_LIMIT: usize = 20 << 20;
/// Initial capacity for a decompressed body, in bytes.
const DECOMPRESSED: usize = 1 << 16;

/// The compression of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Identity,
    Gzip,
    Deflate,
}

/// The properties of the body of an acceptable request, according to its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accepted {
    pub(super) encoding: Encoding,
    coding: Coding,
}

/// A decoded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) encoding: Encoding,
    /// The decompressed body.
    pub(crate) body: Vec<u8>,
    /// `service.name` of the resources, without duplicates.
    pub(super) services: Vec<String>,
    pub(super) profiles: usize,
    /// The number of samples that were taken.
    pub(crate) samples: u64,
    /// Whether a profile has a sample.
    pub(crate) has_samples: bool,
}

/// Checks the head of a request, so that a body that would be refused need not be sent.
pub(super) fn accept(head: &Head) -> Result<Accepted, Answer> {
    if head.path != PATH {
        return Err(Answer::plain(404, "", &format!("only {PATH} is served here")));
    }
    if head.method != "POST" {
        return Err(Answer::plain(405, "Allow: POST\r\n", "only POST is served here"));
    }
    let mime = only(head, "content-type").and_then(|value| value.split(';').next()).unwrap_or_default();
    let encoding = match mime.trim().to_ascii_lowercase().as_str() {
        "application/x-protobuf" => Encoding::Protobuf,
        "application/json" => Encoding::Json,
        _ => {
            let message = "Content-Type must be application/x-protobuf or application/json";
            return Err(Answer::plain(415, "", message));
        }
    };
    let mut versions = head.all(VERSION_HEADER);
    match (versions.next(), versions.next()) {
        (None | Some("1"), None) => {}
        _ => {
            let message = format!("{VERSION_HEADER} must be absent or 1, and not be repeated");
            return Err(Answer::error(encoding, 400, &message));
        }
    }
    let mut codings = head.all("content-encoding").flat_map(|value| value.split(',')).map(str::trim);
    let coding = match (codings.next().map(str::to_ascii_lowercase).as_deref(), codings.next()) {
        (None | Some("identity" | ""), None) => Coding::Identity,
        (Some("gzip" | "x-gzip"), None) => Coding::Gzip,
        (Some("deflate"), None) => Coding::Deflate,
        _ => {
            let message = "Content-Encoding must be gzip, deflate or identity";
            return Err(Answer::error(encoding, 415, message));
        }
    };
    Ok(Accepted { encoding, coding })
}

/// Decompresses and checks the body of a request. The messages in it are not decoded.
pub(super) fn receive(accepted: Accepted, body: Vec<u8>) -> Result<Received, Answer> {
    let encoding = accepted.encoding;
    let refused = |message: &str| Answer::error(encoding, 400, message);
    let decompressed = match accepted.coding {
        Coding::Identity => Ok(body),
        Coding::Gzip => decompress(MultiGzDecoder::new(&body[..])),
        Coding::Deflate => decompress(ZlibDecoder::new(&body[..])),
    };
    let body = decompressed.map_err(|error| refused(&format!("the body cannot be decompressed: {error}")))?;
    if body.len() > BODY_LIMIT {
        return Err(too_large(encoding));
    }
    let compressed = accepted.coding != Coding::Identity;
    let unreadable = |error: ReadError| {
        let error = ReadError { compressed, ..error };
        match error.kind {
            ErrorKind::TooLarge => Answer::error(encoding, 413, &error.to_string()),
            _ => refused(&error.to_string()),
        }
    };
    let (message, body) = match encoding {
        Encoding::Protobuf => (EncodedMessage::of_protobuf(body).map_err(unreadable)?, None),
        Encoding::Json => (read::encoded_json(&body).map_err(unreadable)?, Some(body)),
    };
    let (mut profiles, mut samples, mut has_samples) = (0, 0_u64, false);
    for profile in message.resources().flat_map(EncodedResource::scopes).flat_map(EncodedScope::profiles) {
        profiles += 1;
        samples = samples.saturating_add(sample_count(message.tables(), profile));
        has_samples |= profile.sample_count() > 0;
    }
    let services = services(&message);
    let body = body.unwrap_or_else(|| message.into_bytes());
    Ok(Received { encoding, services, profiles, samples, has_samples, body })
}

/// The answer to a body over the limit.
pub(super) fn too_large(encoding: Encoding) -> Answer {
    Answer::error(encoding, 413, &format!("request body too large: the limit is {BODY_LIMIT} bytes"))
}

/// The value of a header, if it occurs exactly once.
fn only<'a>(head: &'a Head, name: &'a str) -> Option<&'a str> {
    let mut values = head.all(name);
    let first = values.next();
    if values.next().is_none() { first } else { None }
}

/// The answer to a request for which there is no memory at present.
pub(super) fn too_many(encoding: Encoding) -> Answer {
    Answer::error(encoding, 503, "too many requests at once: retry later")
}

/// Decompresses to at most one byte beyond the limit.
fn decompress(decoder: impl Read) -> std::io::Result<Vec<u8>> {
    let mut decoder = decoder.take(BODY_LIMIT as u64 + 1);
    let mut body = Vec::new();
    loop {
        // Grows by a quarter rather than by doubling, to save memory.
        body.reserve_exact(DECOMPRESSED.max(body.len() / 4));
        let room = body.capacity() - body.len();
        if decoder.by_ref().take(room as u64).read_to_end(&mut body)? == 0 {
            return Ok(body);
        }
    }
}

/// The most bytes that are shown of a service's name, and the most names.
const LONGEST_SERVICE: usize = 256;
const MOST_SERVICES: usize = 16;

/// The names of the services, without duplicates.
fn services(message: &EncodedMessage) -> Vec<String> {
    let tables = message.tables();
    let mut services: Vec<String> = Vec::new();
    for resource in message.resources().filter_map(EncodedResource::resource) {
        let named = resource.attributes.iter().find(|attribute| tables.key(attribute) == SERVICE_NAME);
        let value = named.and_then(|attribute| attribute.value.as_ref()?.value.as_ref());
        let name = value.and_then(|value| tables.value_text(value)).unwrap_or("unknown_service");
        let name = &name[..name.floor_char_boundary(LONGEST_SERVICE)];
        if services.len() < MOST_SERVICES && !services.iter().any(|service| service == name) {
            services.push(name.to_owned());
        }
    }
    services
}
