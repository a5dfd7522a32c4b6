//! The settings with which messages cannot be uploaded.

use std::io;
use std::path::PathBuf;

use super::endpoint::AuthorityError;

/// A setting that cannot work. One line says what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The endpoint is `https` in a build without the feature `tls`.
    #[error("{endpoint}: this build of otlpprof has no TLS; use http:// or a build with the feature tls")]
    NoTls {
        /// The endpoint.
        endpoint: String,
    },
    /// The file of CA certificates cannot be read.
    #[error("certificate {}: {reason}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The client's key cannot be read, or does not belong to the client's certificate.
    #[error("client key {}: {reason}", path.display())]
    ClientKey {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The client's certificate was set without its key, or the key without the certificate.
    #[error(
        "a client's certificate and its key go together: set client_certificate and client_key, or neither"
    )]
    HalfAClient,
    /// The address of the proxy in the environment (`HTTPS_PROXY` and its like) cannot exist.
    #[error("the proxy that the environment names (ALL_PROXY, HTTPS_PROXY or HTTP_PROXY): {0}")]
    Proxy(#[from] AuthorityError),
    /// A header's name is not allowed in HTTP. The name is left out: in a header written with a colon it
    /// includes the value, which may be a secret.
    #[error("a header's name is not allowed in HTTP; headers are NAME=VALUE")]
    HeaderName,
    /// A header's value is not allowed in HTTP. The value is left out, since it may be a secret.
    #[error("header {name:?}: its value is not allowed in HTTP")]
    Header {
        /// The header's name.
        name: String,
    },
    /// A header is set that the exporter sets itself.
    #[error("header {name:?}: set by otlpprof itself; remove it")]
    ReservedHeader {
        /// The header's name.
        name: String,
    },
    /// The exporter's thread could not be started.
    #[error("cannot start the exporter's thread: {0}")]
    Thread(#[from] io::Error),
}
