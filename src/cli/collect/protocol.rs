//! The rules of OTLP/HTTP for profiles: which requests are taken, and what the others are told. No input or
//! output here.

use std::io::Read;

use flate2::read::{MultiGzDecoder, ZlibDecoder};

use super::message::{Answer, Encoding, Head};
use crate::otlp::lookup::Lookup;
use crate::otlp::read;
use crate::otlp::read_error::ReadError;
use crate::otlp::wire::ProfilesData;

const PATH: &str = "/v1development/profiles";
const VERSION_HEADER: &str = "otlp-profiles-development-version";
/// The limit of OpenTelemetry collectors, before and after decompression.
pub(super) const BODY_LIMIT: usize = 20 << 20;

/// How the body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Identity,
    Gzip,
    Deflate,
}

/// What the head of an acceptable request says of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accepted {
    pub(super) encoding: Encoding,
    coding: Coding,
}

/// A decoded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) encoding: Encoding,
    /// Decompressed.
    pub(super) body: Vec<u8>,
    /// `service.name` of its resources, each once.
    pub(super) services: Vec<String>,
    pub(super) profiles: usize,
    pub(super) samples: usize,
}

/// Judges a request by its head, so that a body that will be refused need not be sent.
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
            let message = format!("{VERSION_HEADER} must be 1, once, or absent");
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

/// Decompresses and decodes a request's body.
pub(super) fn receive(accepted: Accepted, body: Vec<u8>) -> Result<Received, Answer> {
    let encoding = accepted.encoding;
    let refused = |message: &str| Answer::error(encoding, 400, message);
    let body = match accepted.coding {
        Coding::Identity => Ok(body),
        Coding::Gzip => decompress(MultiGzDecoder::new(&body[..])),
        Coding::Deflate => decompress(ZlibDecoder::new(&body[..])),
    }
    .map_err(|error| refused(&format!("the body does not decompress: {error}")))?;
    if body.len() > BODY_LIMIT {
        return Err(too_large(encoding));
    }
    let decoded = match encoding {
        Encoding::Protobuf => read::decode_protobuf(&body),
        Encoding::Json => read::decode_json(&body),
    };
    let compressed = accepted.coding != Coding::Identity;
    let data = decoded.map_err(|error| refused(&ReadError { compressed, ..error }.to_string()))?.data;
    let profiles: Vec<_> = data
        .resource_profiles
        .iter()
        .flat_map(|resource| &resource.scope_profiles)
        .flat_map(|scope| &scope.profiles)
        .collect();
    let samples = profiles.iter().map(|profile| profile.samples.len()).sum();
    let (services, profiles) = (services(&data), profiles.len());
    Ok(Received { encoding, services, profiles, samples, body })
}

/// The answer to a body over the limit, which the OpenTelemetry collector gives as 400 too.
pub(super) fn too_large(encoding: Encoding) -> Answer {
    Answer::error(encoding, 400, &format!("request body too large: the limit is {BODY_LIMIT} bytes"))
}

/// The value of a header that is there once.
fn only<'a>(head: &'a Head, name: &'a str) -> Option<&'a str> {
    let mut values = head.all(name);
    let first = values.next();
    if values.next().is_none() { first } else { None }
}

/// Decompresses, one byte beyond the limit at most.
fn decompress(decoder: impl Read) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    decoder.take(BODY_LIMIT as u64 + 1).read_to_end(&mut body)?;
    Ok(body)
}

fn services(data: &ProfilesData) -> Vec<String> {
    let lookup = Lookup::new(data);
    let mut services: Vec<String> = Vec::new();
    for resource in data.resource_profiles.iter().filter_map(|profiles| profiles.resource.as_ref()) {
        let named = resource.attributes.iter().find(|attribute| lookup.key(attribute) == "service.name");
        let value = named.and_then(|attribute| attribute.value.as_ref()?.value.as_ref());
        let name = value.and_then(|value| lookup.value_text(value)).unwrap_or("unknown_service");
        if !services.iter().any(|service| service == name) {
            services.push(name.to_owned());
        }
    }
    services
}
