//! The errors of a client of debuginfod servers.

use std::io;
use std::path::PathBuf;

use otlpprof_export::config_error::ConfigError;
use otlpprof_export::endpoint::EndpointError;

/// The reason why servers cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Not a URL, or a URL of another scheme.
    #[error(
        "{url}: not a server of --debuginfod or DEBUGINFOD_URLS; write http://HOST:8002 or file:///FOLDER"
    )]
    NoUrl {
        /// The text as given.
        url: String,
    },
    /// A server's URL cannot be one.
    #[error("a server of --debuginfod or DEBUGINFOD_URLS: {0}")]
    Url(EndpointError),
    /// A URL of a folder is none.
    #[error("{url}: a URL of a folder is file:// and an absolute path")]
    File {
        /// The URL.
        url: String,
    },
    /// A server's connections cannot be set up.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The file of headers cannot be read.
    #[error("DEBUGINFOD_HEADERS_FILE {}: {error}", path.display())]
    Headers {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// There is no folder for downloaded files.
    #[error("no folder for files of debuginfod servers: set DEBUGINFOD_CACHE_PATH or HOME")]
    NoCache,
}

/// The reason why no server has given a file.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FetchError {
    /// No server has the file.
    #[error("no server has the file")]
    Absent,
    /// No server had the file a short time ago, as this file of the cache says. None was asked.
    #[error("not asked, because {} says that no server had the file", .0.display())]
    RememberedAbsence(PathBuf),
    /// A server that may have the file did not give it.
    #[error("{0}")]
    Failed(String),
}

impl FetchError {
    /// Whether all servers have answered, now or before, that they do not have the file.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Absent | Self::RememberedAbsence(_))
    }
}
