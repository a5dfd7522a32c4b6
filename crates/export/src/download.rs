//! GET requests for files of other servers, over HTTP and HTTPS.

use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use ureq::http::{HeaderMap, StatusCode};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{ConnectProxyConnector, Connector, TcpConnector};
use ureq::{Agent, Error};

use super::config_error::ConfigError;
use super::endpoint::{Endpoint, check_authority};
use super::http::header_map;
use super::notice::printable;
#[cfg(feature = "tls")]
use super::{tls, trust};

const USER_AGENT: &str = concat!("otlpprof/", env!("CARGO_PKG_VERSION"));

/// The most redirects that are followed.
const MOST_REDIRECTS: u32 = 3;

/// An HTTP client for the files of one server.
#[derive(Debug)]
pub struct Downloader {
    agent: Agent,
    server: Endpoint,
    headers: HeaderMap,
}

/// The times after which a download is given up.
#[derive(Clone, Copy, Debug)]
pub struct DownloadTimes {
    /// For a connection, for an answer, and for each further piece of it.
    pub stalled: Option<Duration>,
    /// For the whole download.
    pub whole: Option<Duration>,
}

/// The reason why there is no file.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DownloadError {
    /// The server does not have the file.
    #[error("not found")]
    NotFound,
    /// The server's answer is no file.
    #[error("the server answers with status {0}")]
    Status(u16),
    /// The server cannot be reached, or the connection broke. A retry may succeed.
    #[error("{0}")]
    Connection(String),
    /// The server has let the time for a connection or an answer pass.
    #[error("{0}")]
    Silent(String),
}

/// A file that arrives.
pub struct Download {
    headers: HeaderMap,
    body: ureq::BodyReader<'static>,
}

impl Downloader {
    /// A client for the server. The headers are added to each request, which then follows no redirect:
    /// another host must not get them.
    ///
    /// # Errors
    /// If HTTP does not allow a header, if the proxy of the environment is impossible, and for HTTPS in a
    /// build without TLS.
    pub fn new(
        server: Endpoint,
        headers: &[(String, String)],
        times: DownloadTimes,
    ) -> Result<Self, ConfigError> {
        if server.is_https() && !cfg!(feature = "tls") {
            return Err(ConfigError::NoTls { endpoint: server.shown() });
        }
        let mut builder = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(if headers.is_empty() { MOST_REDIRECTS } else { 0 })
            .max_redirects_will_error(false)
            .user_agent(USER_AGENT)
            .timeout_connect(times.stalled)
            .timeout_recv_response(times.stalled)
            .timeout_per_read(times.stalled)
            .timeout_global(times.whole);
        if server.is_loopback() {
            builder = builder.proxy(None);
        }
        let settings = builder.build();
        if let Some(authority) = settings.proxy().and_then(|proxy| proxy.uri().authority()) {
            check_authority(authority)?;
        }
        let tcp = ().chain(ConnectProxyConnector::default()).chain(TcpConnector::default());
        let resolver = DefaultResolver::default();
        #[cfg(feature = "tls")]
        let agent = if server.is_https() || !server.is_loopback() {
            // A server of plain HTTP may redirect to HTTPS.
            let tls = tls::TlsConnector(trust::client_config(None, None)?.into());
            Agent::with_parts(settings, tcp.chain(tls), resolver)
        } else {
            Agent::with_parts(settings, tcp, resolver)
        };
        #[cfg(not(feature = "tls"))]
        let agent = Agent::with_parts(settings, tcp, resolver);
        Ok(Self { agent, server, headers: header_map(headers)? })
    }

    /// The server's URL, without a query.
    pub fn shown(&self) -> String {
        self.server.shown()
    }

    /// Requests a file below the server's URL. `path` begins with a slash and needs no escapes.
    ///
    /// # Errors
    /// If the server does not have the file or cannot be reached.
    pub fn get(&self, path: &str) -> Result<Download, DownloadError> {
        let base = self.server.url().to_string();
        let mut request = self.agent.get(format!("{}{path}", base.trim_end_matches('/')));
        if let Some(headers) = request.headers_mut() {
            headers.extend(self.headers.clone());
        }
        // The client spawns a thread to resolve names, and panics if the system cannot create one.
        let answer = catch_unwind(AssertUnwindSafe(|| request.call()));
        let answer = answer.map_err(|_| DownloadError::Connection("the HTTP client panicked".to_owned()))?;
        let response = answer.map_err(|error| match error {
            Error::Timeout(_) => DownloadError::Silent(reason(&error)),
            _ => DownloadError::Connection(reason(&error)),
        })?;
        match response.status() {
            StatusCode::OK => {
                let (parts, body) = response.into_parts();
                Ok(Download { headers: parts.headers, body: body.into_reader() })
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => Err(DownloadError::NotFound),
            status => Err(DownloadError::Status(status.as_u16())),
        }
    }
}

impl Download {
    /// A header of the answer that is a number.
    pub fn number(&self, header: &str) -> Option<u64> {
        self.headers.get(header)?.to_str().ok()?.trim().parse().ok()
    }
}

impl Read for Download {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.body.read(into)
    }
}

fn reason(error: &Error) -> String {
    #[cfg(feature = "tls")]
    if let Error::Io(error) = error
        && let Some(error) = tls::rustls_error(error)
    {
        return printable(&error.to_string());
    }
    printable(&error.to_string())
}
