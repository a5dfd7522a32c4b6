//! One POST of one message, and its result.

use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use flate2::Compression as Level;
use flate2::write::GzEncoder;
#[cfg(feature = "tls")]
use ureq::Proxy;
use ureq::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{ConnectProxyConnector, Connector, TcpConnector};
use ureq::{Agent, Body, Error, Timeout};

use super::config_error::ConfigError;
use super::endpoint::{Endpoint, check_authority};
use super::message::{ContentType, OutgoingMessage};
use super::notice::printable;
use super::peer::{PeerProtocol, Protocol, WatchConnector};
use super::response;
use super::retry::parse_retry_after;
use super::stats::PartialSuccess;
#[cfg(feature = "tls")]
use super::{tls, trust};

/// The header for the version of the profiles signal. Collectors from 0.163 on check it.
const VERSION_HEADER: (&str, &str) = ("otlp-profiles-development-version", "1");
const USER_AGENT: &str = concat!("otlpprof/", env!("CARGO_PKG_VERSION"));
/// The most bytes read of an answer. An answer is a few bytes, and of a web page the start is enough.
const ANSWER_LIMIT: u64 = 64 * 1024;
const SPEAKS_TLS: &str =
    "the port speaks TLS: write https:// in place of http://, or name the port of plain HTTP";
/// Headers that describe the body or the connection. Only the exporter knows their values.
const RESERVED: [&str; 7] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
    VERSION_HEADER.0,
];

/// The compression of request bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    None,
    /// gzip, which every OTLP/HTTP receiver must read.
    Gzip,
}

/// The settings of the HTTP client.
#[derive(Debug)]
pub(super) struct ClientConfig<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) headers: &'a [(String, String)],
    pub(super) compression: Compression,
    pub(super) ca_certificate: Option<&'a PathBuf>,
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only TLS has certificates"))]
    pub(super) client_certificate: Option<&'a PathBuf>,
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only TLS has certificates"))]
    pub(super) client_key: Option<&'a PathBuf>,
}

/// A message as sent over the wire.
#[derive(Debug)]
pub(super) struct Encoded {
    content_type: ContentType,
    gzip: bool,
    pub(super) body: Vec<u8>,
}

/// The result of a POST.
#[derive(Debug)]
pub(super) enum Answer {
    /// 2xx.
    Accepted(Option<PartialSuccess>),
    /// 2xx, with a body that no OTLP receiver sends.
    NotOtlp { status: u16, found: String },
    /// 413, or 400 with a text about a size limit.
    TooLarge(String),
    /// 429, 502, 503, 504: to be retried, after `retry_after` at the earliest.
    Busy { status: u16, retry_after: Option<Duration>, message: String },
    /// 3xx.
    Redirected { status: u16 },
    /// Any other status. Not retried.
    Refused { status: u16, message: String },
    /// No connection could be made.
    Unreachable(String),
    /// The connection broke or timed out before the whole answer was received.
    Broken(String),
    /// The TLS handshake failed.
    Tls(String),
    /// The peer does not speak HTTP, or the client failed internally.
    Protocol(String),
    /// The peer speaks another protocol. The text says what to do.
    OtherProtocol(&'static str),
}

/// An HTTP client for one endpoint.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    endpoint: Endpoint,
    headers: HeaderMap,
    compression: Compression,
    /// The protocol of the connection's first bytes.
    outside: PeerProtocol,
    /// The protocol of the first bytes inside TLS, or of the connection if there is no TLS.
    inside: PeerProtocol,
    has_authorities: bool,
}

impl Client {
    pub(super) fn new(config: &ClientConfig<'_>) -> Result<Self, ConfigError> {
        if config.endpoint.is_https() && !cfg!(feature = "tls") {
            return Err(ConfigError::NoTls { endpoint: config.endpoint.shown() });
        }
        let mut builder = Agent::config_builder()
            .http_status_as_error(false)
            // A redirect is an answer like any other. Following it could send headers to another host.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(USER_AGENT)
            .max_idle_connections(1)
            // Longer than the usual interval between uploads, shorter than servers keep idle connections.
            .max_idle_age(Duration::from_secs(30))
            .input_buffer_size(16 * 1024)
            .output_buffer_size(64 * 1024);
        if config.endpoint.is_loopback() {
            builder = builder.proxy(None);
        }
        let settings = builder.build();
        if let Some(authority) = settings.proxy().and_then(|proxy| proxy.uri().authority()) {
            check_authority(authority)?;
        }
        let (outside, inside) = (PeerProtocol::default(), PeerProtocol::default());
        let tcp = ().chain(ConnectProxyConnector::default()).chain(TcpConnector::default());
        let watched = tcp.chain(WatchConnector(outside.clone()));
        let resolver = DefaultResolver::default();
        #[cfg(feature = "tls")]
        let agent = match tls_connector(config, settings.proxy())? {
            Some(tls) => Agent::with_parts(
                settings,
                watched.chain(tls).chain(WatchConnector(inside.clone())),
                resolver,
            ),
            None => Agent::with_parts(settings, watched.chain(WatchConnector(inside.clone())), resolver),
        };
        #[cfg(not(feature = "tls"))]
        let agent = Agent::with_parts(settings, watched.chain(WatchConnector(inside.clone())), resolver);
        Ok(Self {
            agent,
            endpoint: config.endpoint.clone(),
            headers: header_map(config.headers)?,
            compression: config.compression,
            outside,
            inside,
            has_authorities: config.ca_certificate.is_some(),
        })
    }

    /// Another handle to the same connections, for interrupting them.
    pub(super) fn agent(&self) -> Agent {
        self.agent.clone()
    }

    /// Compresses a message as configured.
    pub(super) fn encode(&self, message: &OutgoingMessage) -> Encoded {
        let (gzip, body) = match self.compression {
            Compression::None => (false, message.body.clone()),
            Compression::Gzip => (true, gzip(&message.body)),
        };
        Encoded { content_type: message.content_type, gzip, body }
    }

    /// Sends the message once and reads the answer, both within `timeout`.
    pub(super) fn post(&self, message: &Encoded, timeout: Duration) -> Answer {
        // The client spawns a thread to resolve names, and panics if the system cannot create one.
        let answer = catch_unwind(AssertUnwindSafe(|| match self.exchange(message, timeout) {
            Ok(response) => read_answer(response),
            Err(error) => self.other_protocol().unwrap_or_else(|| failed(error, self.has_authorities)),
        }));
        answer.unwrap_or_else(|_| Answer::Broken("the HTTP client panicked".to_owned()))
    }

    /// The answer for a port that speaks another protocol than the URL's.
    fn other_protocol(&self) -> Option<Answer> {
        let advice = match (self.endpoint.is_https(), self.outside.protocol(), self.inside.protocol()) {
            (true, Some(Protocol::Http), None) => {
                "the port speaks plain HTTP: write http:// in place of https://, or name the port of TLS"
            }
            (false, Some(Protocol::Tls), _) => SPEAKS_TLS,
            (_, _, Some(Protocol::Http2)) | (_, Some(Protocol::Http2), _) => {
                "the port speaks only HTTP/2, as gRPC does: name the port of OTLP over HTTP, usually 4318 in \
                 place of 4317"
            }
            _ => return None,
        };
        Some(Answer::OtherProtocol(advice))
    }

    fn exchange(&self, message: &Encoded, timeout: Duration) -> Result<Response<Body>, Error> {
        let mut request = self.agent.post(self.endpoint.url().clone());
        if let Some(headers) = request.headers_mut() {
            headers.extend(self.headers.clone());
        }
        request = request
            .header("content-type", message.content_type.mime())
            .header(VERSION_HEADER.0, VERSION_HEADER.1);
        if message.gzip {
            request = request.header("content-encoding", "gzip");
        }
        request.config().timeout_global(Some(timeout)).build().send(&message.body[..])
    }
}

/// Checks whether requests can have these headers.
///
/// # Errors
/// HTTP does not allow one of them, or the exporter sets it itself.
pub fn check_headers(headers: &[(String, String)]) -> Result<(), ConfigError> {
    header_map(headers).map(drop)
}

pub(super) fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, ConfigError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| ConfigError::HeaderName)?;
        if RESERVED.contains(&name.as_str()) {
            return Err(ConfigError::ReservedHeader { name: name.to_string() });
        }
        let not_allowed = |_| ConfigError::Header { name: name.to_string() };
        let mut value = HeaderValue::from_str(value.trim()).map_err(not_allowed)?;
        value.set_sensitive(true);
        map.append(name, value);
    }
    Ok(map)
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Level::default());
    // SANITY: writing to a Vec cannot fail, and the encoder itself has no errors.
    encoder.write_all(body).and_then(|()| encoder.finish()).expect("gzip to memory")
}

#[cfg(feature = "tls")]
fn tls_connector(
    config: &ClientConfig<'_>,
    proxy: Option<&Proxy>,
) -> Result<Option<tls::TlsConnector>, ConfigError> {
    let is_proxy_https = proxy.is_some_and(|proxy| proxy.uri().scheme_str() == Some("https"));
    if !config.endpoint.is_https() && !is_proxy_https {
        return Ok(None);
    }
    let client = match (config.client_certificate, config.client_key) {
        (Some(certificate), Some(key)) => Some((certificate.as_path(), key.as_path())),
        (None, None) => None,
        _ => return Err(ConfigError::HalfAClient),
    };
    let trusted = config.ca_certificate.map(PathBuf::as_path);
    trust::client_config(trusted, client).map(|config| Some(tls::TlsConnector(config.into())))
}

fn read_answer(mut response: Response<Body>) -> Answer {
    let status = response.status();
    let header = |name| response.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let mime = header("content-type").unwrap_or_default().to_ascii_lowercase();
    let retry_after = header("retry-after").and_then(|value| parse_retry_after(value, SystemTime::now()));
    let mut body = Vec::new();
    // The status decides. A body that breaks off does not change it.
    let end = response.body_mut().as_reader().take(ANSWER_LIMIT).read_to_end(&mut body);
    let is_whole = end.is_ok_and(|length| (length as u64) < ANSWER_LIMIT);
    let code = status.as_u16();
    if status.is_success() {
        return match response::foreign(&mime, &body, is_whole) {
            Some(found) => Answer::NotOtlp { status: code, found },
            None => Answer::Accepted(response::partial_success(&mime, &body)),
        };
    }
    let message = response::error_message(&mime, &body);
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => Answer::TooLarge(message),
        StatusCode::BAD_REQUEST if response::mentions_size_limit(&message) => Answer::TooLarge(message),
        StatusCode::BAD_REQUEST if response::mentions_tls(&body) => Answer::OtherProtocol(SPEAKS_TLS),
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Answer::Busy { status: code, retry_after, message },
        _ if status.is_redirection() => Answer::Redirected { status: code },
        _ => Answer::Refused { status: code, message },
    }
}

#[cfg_attr(not(feature = "tls"), expect(unused_variables, reason = "only TLS has authorities"))]
fn failed(error: Error, has_authorities: bool) -> Answer {
    let text = printable(&error.to_string());
    #[cfg(feature = "tls")]
    if let Error::Io(error) = &error
        && let Some(error) = tls::rustls_error(error)
    {
        let advice = tls::advice(error, has_authorities);
        let separator = if advice.is_empty() { "" } else { "; " };
        return Answer::Tls(format!("{}{separator}{advice}", printable(&error.to_string())));
    }
    match error {
        Error::Timeout(Timeout::Resolve | Timeout::Connect)
        | Error::HostNotFound
        | Error::ConnectionFailed
        | Error::ConnectProxyFailed(_) => Answer::Unreachable(text),
        Error::Timeout(_) => Answer::Broken(text),
        Error::Io(error) => match error.kind() {
            io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::NotConnected
            | io::ErrorKind::TimedOut
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::WouldBlock => Answer::Broken(text),
            // Connection refused, no route, or a name that does not resolve (which has no error kind of its
            // own).
            _ => Answer::Unreachable(text),
        },
        Error::Tls(_) => Answer::Tls(text),
        _ => Answer::Protocol(text),
    }
}
