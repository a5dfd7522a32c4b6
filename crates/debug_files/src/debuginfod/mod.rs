//! A client of debuginfod servers, with the cache of elfutils' client.
//!
//! All servers are asked at once; the first one that has the file delivers it. A file is checked before it
//! enters the cache: it must be an ELF file of the right identity. A file that no server has is remembered,
//! as elfutils does, by an empty file.
//!
//! | Module | Duty |
//! |---|---|
//! | [`settings`] | the settings of debuginfod's clients, from the environment |
//! | `cache` | the cache that is shared with elfutils' client |
//! | `race` | one file from several servers that are asked at once |
//! | `server` | one server, or the folder of a `file://` URL |
//! | [`narration`] | lines about downloads, if the environment asks for them |
//! | [`error`] | the errors of a client |

mod cache;
pub mod error;
pub mod narration;
mod race;
mod server;
pub mod settings;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use otlpprof_elf::debug_link::DebugLink;
use otlpprof_export::download::DownloadTimes;
use parking_lot::Mutex;

use self::cache::{Cache, Cached};
use self::error::{ClientError, FetchError};
use self::narration::{Narration, Tell};
use self::race::{Entrant, Race};
use self::server::Server;
pub use self::settings::Settings;
use super::acceptance::Wanted;
use super::examined::open;
use super::files::FileKind;
use super::identity::FileId;

/// A client of debuginfod servers. Clones share their connections and fetches.
#[derive(Clone, Debug)]
pub struct DebuginfodClient(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    servers: Vec<Arc<Server>>,
    shown: Vec<String>,
    settings: Settings,
    narration: Narration,
    cache: Cache,
    /// The result of each fetch. A lock that is held is a fetch that others wait for.
    results: Mutex<Answers>,
}

type Answers = HashMap<(FileId, FileKind), Arc<Mutex<Option<Answer>>>>;

/// The result of a fetch, and its time.
#[derive(Debug)]
struct Answer {
    at: Instant,
    result: Result<PathBuf, FetchError>,
}

impl DebuginfodClient {
    /// A client with these settings; `None` if they name no server. `tell` shows a line to the user, where
    /// the settings ask for it.
    ///
    /// # Errors
    /// If a setting cannot work.
    pub fn new(settings: Settings, tell: Tell) -> Result<Option<Self>, ClientError> {
        if settings.urls.is_empty() {
            return Ok(None);
        }
        let headers = settings.headers()?;
        let stalled = (!settings.timeout.is_zero()).then_some(settings.timeout);
        let times = DownloadTimes { stalled, whole: settings.max_time };
        let connect = |url: &String| Server::of(url, &headers, times).map(Arc::new);
        let servers = settings.urls.iter().map(connect).collect::<Result<Vec<_>, _>>()?;
        let shown = servers.iter().map(|server| server.shown()).collect();
        let cache = Cache::at(settings.cache.clone().ok_or(ClientError::NoCache)?);
        let (narration, results) = (Narration::new(&settings, tell), Mutex::default());
        Ok(Some(Self(Arc::new(Inner { servers, shown, settings, narration, cache, results }))))
    }

    /// The URLs of the servers.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.0.shown.iter().map(String::as_str)
    }

    /// A file of an object, from the cache or the servers. The debug file of an object without a build-id is
    /// known by the object's debug link.
    ///
    /// # Errors
    /// If no server has the file, or gives it.
    pub fn fetch(
        &self,
        id: &FileId,
        kind: FileKind,
        link: Option<&DebugLink>,
    ) -> Result<PathBuf, FetchError> {
        let result = self.0.results.lock().entry((*id, kind)).or_default().clone();
        let mut result = result.lock();
        let lifetime = Duration::from_secs(self.0.cache.miss_seconds());
        if let Some(answer) =
            result.as_ref().filter(|answer| answer.result.is_ok() || answer.at.elapsed() < lifetime)
        {
            return answer.result.clone();
        }
        let fetched = self.fetch_now(Wanted { id: *id, kind, link: link.cloned() });
        result.insert(Answer { at: Instant::now(), result: fetched }).result.clone()
    }

    fn fetch_now(&self, wanted: Wanted) -> Result<PathBuf, FetchError> {
        let Inner { servers, settings, narration, cache, .. } = &*self.0;
        let path = cache.path_of(&wanted.id, wanted.kind);
        match cache.look_up(&path) {
            Cached::File if open(&path).is_ok_and(|file| wanted.accept(&file).is_ok()) => {
                narration.detail(|| format!("{}: downloaded before", path.display()));
                return Ok(path);
            }
            Cached::Miss => {
                narration.detail(|| format!("{}: no server had it before", path.display()));
                return Err(FetchError::RememberedAbsence(path));
            }
            Cached::File | Cached::Nothing => {}
        }
        cache.clean();
        let race = Arc::new(Race::new(wanted, path.clone(), settings, *narration, servers.len()));
        for server in servers {
            Entrant { server: server.clone(), race: race.clone() }.start();
        }
        let result = race.wait();
        if matches!(result, Err(FetchError::Absent)) {
            cache.remember_miss(&path);
        }
        result.map(|()| path)
    }
}
