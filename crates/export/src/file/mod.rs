//! Messages to files.
//!
//! A name without `%t` denotes one growing file. It holds protobuf messages, each preceded by its length as a
//! big-endian u32 (the framing of the OpenTelemetry collector's file exporter), or one JSON document a line.
//! A name with `%t` and a period denotes growing files, one for each period. A name with `%t` and no period
//! denotes one file for every message: the file appears under its name once it is whole, and holds the
//! message without framing.
//!
//! The file is opened for every message: it may be rotated away at any time, and no descriptor stays open in
//! the application's process. Nothing is synced to the disk, since profiles are not worth a stall. Only the
//! user can read and write the files (mode 0600).
//!
//! A message that cannot be written is kept, within `KEPT`, until [`FileExporter::retry`] writes it.
//!
//! | Module | Duty |
//! |---|---|
//! | `shared_folders` | the check of files in folders that other users can write |

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::unistd::{AccessFlags, access};
use parking_lot::Mutex;

use super::file_error::FileError;
use super::message::{ContentType, OutgoingMessage};
use super::notice::Notices;
use super::pattern::PathPattern;
use super::queue::{Limits, Queue};
use super::stats::{FileStats, Tally};

mod shared_folders;

/// Number of attempts to take the file's lock while another process holds it, and the wait between two
/// attempts.
const LOCK_ATTEMPTS: u32 = 100;
const LOCK_WAIT: Duration = Duration::from_millis(10);
/// The most messages and bytes kept for another attempt. Beyond that, the oldest message is discarded.
const KEPT: Limits = Limits { messages: 64, bytes: 32 << 20 };
/// Read and write only for the user: stacks and labels reveal how a program works.
const MODE: u32 = 0o600;
/// Number of names that are tried for a message's file while the earlier names exist.
const COLLISIONS: u32 = 1_000;

/// Writes messages to the file or files of one name.
#[derive(Debug)]
pub struct FileExporter {
    pattern: PathPattern,
    /// How long a file with the time in its name grows. `None`: each message has its own file.
    period: Option<Duration>,
    state: Mutex<State>,
    notices: Notices,
}

#[derive(Debug)]
struct State {
    stats: FileStats,
    /// Messages that could not be written.
    kept: Queue,
    /// Device and inode of the file whose content was checked last.
    checked: Option<(u64, u64)>,
    /// The growing file of the current period, and the time when the period began.
    current: Option<(SystemTime, PathBuf)>,
}

impl Default for State {
    fn default() -> Self {
        Self { stats: FileStats::default(), kept: Queue::new(KEPT), checked: None, current: None }
    }
}

impl State {
    /// Keeps a message for another attempt. Messages for which there is no room are counted as failed.
    fn keep(&mut self, message: OutgoingMessage) {
        let evicted = self.kept.push(message);
        self.stats.failed += evicted.iter().map(Tally::of).sum();
    }
}

impl FileExporter {
    /// Parses the name and checks whether a file could be written now. Creates no file.
    ///
    /// # Errors
    /// The name does not parse, the folder does not exist, or the permission is missing.
    pub fn new(pattern: &str) -> Result<Self, FileError> {
        let pattern = PathPattern::parse(pattern)?;
        check_writable(&pattern.expand(SystemTime::now(), 0))?;
        Ok(Self { pattern, period: None, state: Mutex::default(), notices: Notices::default() })
    }

    /// Lets a file with the time in its name grow for `period` before the next file begins.
    #[must_use]
    pub fn rolling(self, period: Option<Duration>) -> Self {
        Self { period: period.filter(|_| self.pattern.has_time()), ..self }
    }

    /// The file that messages will be appended to and its length in bytes, if it has content already.
    pub fn continued(&self) -> Option<(PathBuf, u64)> {
        if self.pattern.has_time() {
            return None;
        }
        let path = self.pattern.expand(SystemTime::now(), 0);
        let bytes = path.metadata().ok().filter(Metadata::is_file)?.len();
        (bytes > 0).then_some((path, bytes))
    }

    /// Checks whether messages of this kind can follow the content of the growing file, if it exists.
    ///
    /// # Errors
    /// The file has other content, or cannot be read.
    pub fn check_content(&self, content_type: ContentType) -> Result<(), FileError> {
        let path = self.pattern.expand(SystemTime::now(), 0);
        if self.pattern.has_time() || !path.is_file() {
            return Ok(());
        }
        let mut file = File::open(&path).map_err(|reason| FileError::Io { path: path.clone(), reason })?;
        check_content(&path, &mut file, content_type)
    }

    /// Writes one message as a whole, or leaves nothing of it in any file. Returns the file that holds the
    /// message.
    ///
    /// # Errors
    /// The message could not be written. It is kept for another attempt, unless no attempt can succeed. The
    /// first error of each kind is logged as a warning.
    pub fn write(&self, message: &OutgoingMessage) -> Result<PathBuf, FileError> {
        let mut state = self.state.lock();
        let result = self.attempt(&mut state, message);
        match &result {
            Ok(_) => state.stats.written += Tally::of(message),
            Err(error) => {
                if error.is_final() {
                    state.stats.failed += Tally::of(message);
                } else {
                    state.keep(message.clone());
                }
                self.notices.warn(error.kind(), &error.to_string());
            }
        }
        result
    }

    /// Writes the messages that could not be written before, in order, and stops at the first that still
    /// fails.
    pub fn retry(&self) {
        let mut state = self.state.lock();
        let mut kept = state.kept.drain().into_iter();
        let mut written = 0;
        while let Some(message) = kept.next() {
            if self.attempt(&mut state, &message).is_err() {
                state.keep(message);
                kept.by_ref().for_each(|message| state.keep(message));
            } else {
                written += 1;
                state.stats.written += Tally::of(&message);
            }
        }
        drop(state);
        if written > 0 {
            log::info!("file: {written} profiles have been written after earlier attempts failed");
        }
    }

    /// Counts the kept messages as failed. No further attempt is made for them.
    pub fn give_up(&self) {
        let mut state = self.state.lock();
        let kept: Tally = state.kept.drain().iter().map(Tally::of).sum();
        state.stats.failed += kept;
        drop(state);
        if kept.messages > 0 {
            let (messages, samples) = (kept.messages, kept.samples);
            log::warn!("file: {messages} profiles of {samples} samples could not be written, and are lost");
        }
    }

    fn attempt(&self, state: &mut State, message: &OutgoingMessage) -> Result<PathBuf, FileError> {
        match self.period {
            Some(period) => {
                let path = self.current_file(&mut state.current, period);
                self.append(path, &mut state.checked, message)
            }
            None if self.pattern.has_time() => self.write_own_file(message),
            None => self.append(self.pattern.expand(SystemTime::now(), 0), &mut state.checked, message),
        }
    }

    /// The counters.
    pub fn stats(&self) -> FileStats {
        let state = self.state.lock();
        FileStats { pending: state.kept.tally(), ..state.stats }
    }

    /// Writes the message under a temporary name, then renames the file to the first of its names that is
    /// free.
    fn write_own_file(&self, message: &OutgoingMessage) -> Result<PathBuf, FileError> {
        let now = SystemTime::now();
        let path = self.pattern.expand(now, 0);
        let failed = |reason| FileError::Io { path: path.clone(), reason };
        let folder = folder_of(&path)?;
        shared_folders::check_links(&path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = folder.join(format!(".{name}.{}.tmp", std::process::id()));
        let result = write_new(&temporary, &message.body).and_then(|()| {
            for collision in 0..COLLISIONS {
                let path = self.pattern.expand(now, collision);
                if rename_to_new(&temporary, &path)? {
                    return Ok(path);
                }
            }
            Err(io::ErrorKind::AlreadyExists.into())
        });
        if result.is_err() {
            // No half-written file stays. If the file was never created, the removal fails and that does not
            // matter.
            let _ = fs::remove_file(&temporary);
        }
        result.map_err(failed)
    }

    /// The file of the current period. A file that already exists when a period begins belongs to another
    /// process or to an earlier period, so the next free name is used.
    fn current_file(&self, current: &mut Option<(SystemTime, PathBuf)>, period: Duration) -> PathBuf {
        let now = SystemTime::now();
        match current {
            // A clock that was set back begins a new period.
            Some((began, path)) if now.duration_since(*began).is_ok_and(|elapsed| elapsed < period) => {
                path.clone()
            }
            _ => {
                let free = |path: &PathBuf| path.symlink_metadata().is_err();
                let mut names = (0..COLLISIONS).map(|collision| self.pattern.expand(now, collision));
                let path = names.find(free).unwrap_or_else(|| self.pattern.expand(now, 0));
                *current = Some((now, path.clone()));
                path
            }
        }
    }

    /// Appends the framed message by one write, under the file's lock. If the write fails, truncates the file
    /// to its old length.
    fn append(
        &self,
        path: PathBuf,
        checked: &mut Option<(u64, u64)>,
        message: &OutgoingMessage,
    ) -> Result<PathBuf, FileError> {
        let record = frame(&path, message)?;
        let folder = folder_of(&path)?;
        shared_folders::check_links(&path)?;
        check_kind(&path)?;
        let failed = |reason| FileError::Io { path: path.clone(), reason };
        let is_shared = shared_folders::others_can_write(&folder);
        let mut options = OpenOptions::new();
        options.append(true).read(true).create(true).mode(MODE);
        if is_shared {
            // A link may have been created since the check above.
            options.custom_flags(libc::O_NOFOLLOW);
        }
        let mut file = options.open(&path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if is_shared {
            shared_folders::check_owner(&path, &metadata)?;
        }
        if !metadata.is_file() {
            file.write_all(&record).map_err(failed)?;
            return Ok(path);
        }
        lock(&path, &file)?;
        let identity = (metadata.dev(), metadata.ino());
        if *checked != Some(identity) {
            check_content(&path, &mut file, message.content_type)?;
            *checked = Some(identity);
        }
        let end = file.seek(SeekFrom::End(0)).map_err(failed)?;
        if let Err(reason) = file.write_all(&record) {
            // If the truncation fails too, nothing can be repaired here. The next process refuses the broken
            // file.
            let _ = file.set_len(end);
            return Err(failed(reason));
        }
        Ok(path)
    }
}

/// The message with its framing: a length prefix before it or a line break after it.
fn frame(path: &Path, message: &OutgoingMessage) -> Result<Vec<u8>, FileError> {
    let body = &message.body;
    let mut record = Vec::with_capacity(body.len() + 4);
    match message.content_type {
        ContentType::Protobuf => {
            let too_long = |_| FileError::TooLong { path: path.to_owned(), bytes: body.len() };
            let length = u32::try_from(body.len()).map_err(too_long)?;
            record.extend_from_slice(&length.to_be_bytes());
            record.extend_from_slice(body);
        }
        ContentType::Json => {
            record.extend_from_slice(body);
            record.push(b'\n');
        }
    }
    Ok(record)
}

fn write_new(path: &Path, body: &[u8]) -> io::Result<()> {
    // An existing file of that name was left by a dead process that had this process's id.
    let create = || OpenOptions::new().write(true).create_new(true).mode(MODE).open(path);
    let mut file = match create() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            create()?
        }
        other => other?,
    };
    file.write_all(body)
}

/// Renames a file. Returns false, and leaves the file as it is, if the new name exists.
fn rename_to_new(from: &Path, to: &Path) -> io::Result<bool> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        // On a file system without hard links, the check and the rename are two steps.
        Err(_) if to.symlink_metadata().is_ok() => Ok(false),
        Err(_) => fs::rename(from, to).map(|()| true),
    }
}

/// The folder of a file. The folder must exist.
fn folder_of(path: &Path) -> Result<PathBuf, FileError> {
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    if folder.is_dir() {
        Ok(folder.to_owned())
    } else {
        Err(FileError::NoFolder { path: path.to_owned(), folder: folder.to_owned() })
    }
}

/// Refuses files on which opening or writing could block.
fn check_kind(path: &Path) -> Result<(), FileError> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() || metadata.file_type().is_char_device() => Ok(()),
        Ok(_) => Err(FileError::Kind { path: path.to_owned() }),
        // Opening the file will report the error, if there is one.
        Err(_) => Ok(()),
    }
}

fn check_writable(path: &Path) -> Result<(), FileError> {
    let folder = folder_of(path)?;
    shared_folders::check_links(path)?;
    check_kind(path)?;
    if shared_folders::others_can_write(&folder)
        && let Ok(metadata) = path.metadata()
    {
        shared_folders::check_owner(path, &metadata)?;
    }
    let wanted = if path.exists() {
        access(path, AccessFlags::W_OK)
    } else {
        access(&folder, AccessFlags::W_OK | AccessFlags::X_OK)
    };
    wanted.map_err(|error| FileError::Io { path: path.to_owned(), reason: error.into() })
}

/// Takes the file's advisory lock, so that processes with one file do not mix their records. Closing the
/// descriptor releases the lock.
fn lock(path: &Path, file: &File) -> Result<(), FileError> {
    for _ in 0..LOCK_ATTEMPTS {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            // The file system has no locks. Appending is atomic on most such file systems.
            Err(TryLockError::Error(_)) => return Ok(()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_WAIT),
        }
    }
    Err(FileError::Locked { path: path.to_owned() })
}

/// Checks whether the file's content ends where a message of this kind may follow.
fn check_content(path: &Path, file: &mut File, content_type: ContentType) -> Result<(), FileError> {
    let intact = match content_type {
        ContentType::Protobuf => ends_after_record(file),
        ContentType::Json => ends_after_line(file),
    };
    match intact {
        Ok(true) => Ok(()),
        Ok(false) => {
            let found = match content_type {
                ContentType::Protobuf => "is not a whole number of length-prefixed messages",
                ContentType::Json => "is not whole lines of JSON documents",
            };
            Err(FileError::Foreign { path: path.to_owned(), found })
        }
        Err(reason) => Err(FileError::Io { path: path.to_owned(), reason }),
    }
}

fn ends_after_record(file: &mut File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let mut offset = 0;
    while length - offset >= 4 {
        let mut prefix = [0; 4];
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(&mut prefix)?;
        let record = 4 + u64::from(u32::from_be_bytes(prefix));
        if record > length - offset {
            return Ok(false);
        }
        offset += record;
    }
    Ok(offset == length)
}

fn ends_after_line(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let (mut first, mut last) = ([0], [0]);
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut first)?;
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(first == *b"{" && last == *b"\n")
}

#[cfg(test)]
mod tests;
