//! A server of files: one that is asked over HTTP, or the folder of a `file://` URL.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use otlpprof_export::download::{DownloadError, DownloadTimes, Downloader};
use otlpprof_export::endpoint::{Endpoint, EndpointError};
use otlpprof_model::percent_decoded;
use parking_lot::Mutex;

use super::error::ClientError;
use crate::files::FileKind;
use crate::identity::FileId;

/// How long a server that has let its time for an answer pass is not asked: a profile has many objects, and
/// the times would add up.
const SPARED: Duration = Duration::from_secs(60);

/// A server.
#[derive(Debug)]
pub(super) enum Server {
    /// A server that is asked over HTTP, and the time at which it had not answered.
    Http(Box<Downloader>, Mutex<Option<Instant>>),
    /// A folder of this machine.
    Folder(PathBuf),
}

/// A file that a server gives.
pub(super) struct Given {
    pub(super) content: Box<dyn Read>,
    /// The file's length in bytes, as far as the server says it.
    pub(super) len: Option<u64>,
}

/// The reason why a server gives no file.
pub(super) enum Failure {
    /// The server does not have the file.
    Absent,
    /// Another server has delivered.
    Late,
    /// The connection broke: a retry may succeed.
    Broken(String),
    /// Anything else.
    Refused(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absent => "not found",
            Self::Late => "another server is faster",
            Self::Broken(why) | Self::Refused(why) => why,
        })
    }
}

impl Server {
    /// The server of a URL.
    ///
    /// # Errors
    /// If the URL does not name a server, or its connections cannot be set up.
    pub(super) fn of(
        url: &str,
        headers: &[(String, String)],
        times: DownloadTimes,
    ) -> Result<Self, ClientError> {
        if let Some(rest) = url.strip_prefix("file://") {
            let path = rest.strip_prefix("localhost").unwrap_or(rest);
            let path = percent_decoded(path).ok().filter(|path| path.starts_with('/'));
            let path = path.ok_or_else(|| ClientError::File { url: url.to_owned() })?;
            return Ok(Self::Folder(path.into()));
        }
        let endpoint = Endpoint::signal(url).map_err(|error| match error {
            EndpointError::NotHttp { url } => ClientError::NoUrl { url },
            error => ClientError::Url(error),
        })?;
        Ok(Self::Http(Box::new(Downloader::new(endpoint, headers, times)?), Mutex::default()))
    }

    /// The server's URL, without a query.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Http(server, _) => server.shown(),
            Self::Folder(folder) => format!("file://{}", folder.display()),
        }
    }

    /// Asks for a file.
    pub(super) fn get(&self, id: &FileId, kind: FileKind) -> Result<Given, Failure> {
        let place = format!("buildid/{id}/{}", kind.name());
        match self {
            Self::Http(_, silent) if silent.lock().is_some_and(|at| at.elapsed() < SPARED) => {
                let seconds = SPARED.as_secs();
                Err(Failure::Refused(format!("not asked: it has not answered in the last {seconds} s")))
            }
            Self::Http(server, silent) => match server.get(&format!("/{place}")) {
                Ok(download) => {
                    let lengths = ["x-debuginfod-size", "content-length"].map(|name| download.number(name));
                    let len = lengths.into_iter().flatten().max();
                    Ok(Given { content: Box::new(download), len })
                }
                Err(DownloadError::NotFound) => Err(Failure::Absent),
                Err(error @ DownloadError::Status(_)) => Err(Failure::Refused(error.to_string())),
                Err(DownloadError::Connection(why)) => Err(Failure::Broken(why)),
                Err(DownloadError::Silent(why)) => {
                    *silent.lock() = Some(Instant::now());
                    Err(Failure::Refused(why))
                }
            },
            Self::Folder(folder) => {
                let path = folder.join(place);
                let opened = path.metadata().and_then(|metadata| opened(&path, &metadata));
                opened.map_err(|error| match error.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Failure::Absent,
                    _ => Failure::Refused(format!("{}: {error}", path.display())),
                })
            }
        }
    }
}

/// Opens a regular file. Opening anything else may have effects, or wait.
fn opened(path: &Path, metadata: &Metadata) -> io::Result<Given> {
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no regular file"));
    }
    Ok(Given { content: Box::new(File::open(path)?), len: Some(metadata.len()) })
}
