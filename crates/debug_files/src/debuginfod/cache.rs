//! The cache of elfutils' client (debuginfod-find's manual, "CACHE"), which this client shares.

use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use otlpprof_incomplete_file::IncompleteFile;

use crate::files::FileKind;
use crate::identity::FileId;

/// The file whose content is the seconds between two cleanings, and whose time is the time of the last one.
const CLEAN_INTERVAL: (&str, u64) = ("cache_clean_interval_s", 86_400);
/// The file whose content is the seconds after which an unused file is removed.
const MAX_UNUSED: (&str, u64) = ("max_unused_age_s", 604_800);
/// The file whose content is the seconds for which a miss is remembered.
const MISS: (&str, u64) = ("cache_miss_s", 600);

#[derive(Debug)]
pub(super) struct Cache {
    root: PathBuf,
}

/// The state of a file in the cache.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cached {
    File,
    /// No server had the file, not long ago.
    Miss,
    Nothing,
}

impl Cache {
    pub(super) fn at(root: PathBuf) -> Self {
        Self { root }
    }

    pub(super) fn path_of(&self, id: &FileId, kind: FileKind) -> PathBuf {
        self.root.join(id.to_string()).join(kind.name())
    }

    pub(super) fn look_up(&self, path: &Path) -> Cached {
        let Ok(metadata) = fs::metadata(path) else { return Cached::Nothing };
        if metadata.len() > 0 {
            return Cached::File;
        }
        let age = metadata.modified().ok().and_then(|time| time.elapsed().ok());
        // A time in the future has no age.
        match age {
            Some(age) if age > Duration::from_secs(self.miss_seconds()) => Cached::Nothing,
            _ => Cached::Miss,
        }
    }

    /// Remembers that no server has a file.
    pub(super) fn remember_miss(&self, path: &Path) {
        let write = || {
            let folder = path.parent().unwrap_or(&self.root);
            fs::create_dir_all(folder)?;
            IncompleteFile::inside(folder)?.persist(path)
        };
        if let Err(error) = write() {
            log::debug!("{}: {error}", path.display());
        }
    }

    /// The seconds for which a miss is remembered.
    pub(super) fn miss_seconds(&self) -> u64 {
        self.number(MISS)
    }

    /// Removes files that were not used for long, if the last cleaning is long ago.
    pub(super) fn clean(&self) {
        if let Err(error) = self.try_clean() {
            log::debug!("{}: {error}", self.root.display());
        }
    }

    fn try_clean(&self) -> io::Result<()> {
        if !self.root.is_dir() {
            fs::create_dir_all(&self.root)?;
            fs::set_permissions(&self.root, Permissions::from_mode(0o700))?;
        }
        let marker = self.root.join(CLEAN_INTERVAL.0);
        let now = SystemTime::now();
        let long_ago = |time: io::Result<SystemTime>, seconds| {
            time.is_ok_and(|time| {
                now.duration_since(time).is_ok_and(|age| age > Duration::from_secs(seconds))
            })
        };
        let cleaned = match fs::metadata(&marker) {
            Ok(metadata) => metadata.modified(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return File::create(&marker)?.write_all(CLEAN_INTERVAL.1.to_string().as_bytes());
            }
            Err(error) => return Err(error),
        };
        if !long_ago(cleaned, self.number(CLEAN_INTERVAL)) {
            return Ok(());
        }
        OpenOptions::new().write(true).open(&marker)?.set_times(FileTimes::new().set_modified(now))?;
        let max_age = self.number(MAX_UNUSED);
        for folder in fs::read_dir(&self.root)?.flatten() {
            // Folders that are not named after an identity belong to other programs.
            let is_id = folder.file_name().to_str().is_some_and(|name| FileId::parse(name).is_ok());
            let Some(files) = fs::read_dir(folder.path()).ok().filter(|_| is_id) else { continue };
            for file in files.flatten() {
                let metadata = file.metadata()?;
                if metadata.is_file()
                    && long_ago(metadata.accessed(), max_age)
                    && long_ago(metadata.modified(), max_age)
                {
                    fs::remove_file(file.path())?;
                }
            }
            // Fails where a file is left.
            let _ = fs::remove_dir(folder.path());
        }
        Ok(())
    }

    fn number(&self, (name, default): (&str, u64)) -> u64 {
        let read = || {
            let mut text = String::new();
            File::open(self.root.join(name)).ok()?.take(64).read_to_string(&mut text).ok()?;
            text.trim().parse().ok()
        };
        read().unwrap_or(default)
    }
}
