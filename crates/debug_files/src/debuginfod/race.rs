//! One file from several servers: all are asked at once, and the first one that has the file delivers it.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use otlpprof_elf::source::FileSource;
use otlpprof_incomplete_file::IncompleteFile;
use parking_lot::{Condvar, Mutex};

use super::error::FetchError;
use super::narration::{Narration, Progress};
use super::server::{Failure, Given, Server};
use super::settings::Settings;
use crate::acceptance::Wanted;

/// The bytes that must come in each timeout (debuginfod-find's manual, `DEBUGINFOD_TIMEOUT`).
const LEAST_BYTES: u64 = 100 << 10;

/// A file that is being fetched.
#[derive(Debug)]
pub(super) struct Race {
    wanted: Wanted,
    /// The place of the file.
    path: PathBuf,
    timeout: Duration,
    max_size: u64,
    retries: u32,
    narration: Narration,
    state: Mutex<State>,
    changed: Condvar,
    /// Held by the one server that delivers.
    delivery: Mutex<()>,
}

#[derive(Debug)]
struct State {
    running: usize,
    is_there: bool,
    failures: Vec<String>,
}

impl Race {
    pub(super) fn new(
        wanted: Wanted,
        path: PathBuf,
        settings: &Settings,
        narration: Narration,
        servers: usize,
    ) -> Self {
        Self {
            wanted,
            path,
            timeout: settings.timeout,
            max_size: settings.max_size,
            retries: settings.retries,
            narration,
            state: Mutex::new(State { running: servers, is_there: false, failures: Vec::new() }),
            changed: Condvar::new(),
            delivery: Mutex::new(()),
        }
    }

    /// Waits until the file is there, or all servers have failed.
    pub(super) fn wait(&self) -> Result<(), FetchError> {
        let mut state = self.state.lock();
        while !state.is_there && state.running > 0 {
            self.changed.wait(&mut state);
        }
        match (state.is_there, &state.failures[..]) {
            (true, _) => Ok(()),
            (false, []) => Err(FetchError::Absent),
            (false, failures) => Err(FetchError::Failed(failures.join("; "))),
        }
    }

    fn is_over(&self) -> bool {
        self.state.lock().is_there
    }

    /// Copies a file to its place, if it is the wanted one.
    fn deliver(&self, mut given: Given, from: &str) -> Result<(), Failure> {
        if let Some(len) = given.len.filter(|&len| len > self.max_size) {
            return Err(Failure::Refused(format!("{len} bytes, more than {}", self.max_size)));
        }
        let _delivery = self.delivery.lock();
        if self.is_over() {
            return Err(Failure::Late);
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let not_kept = |error: io::Error| Failure::Refused(format!("{}: {error}", folder.display()));
        let created = fs::create_dir_all(folder).and_then(|()| IncompleteFile::inside(folder));
        let mut incomplete = created.map_err(not_kept)?;
        let progress = self.narration.download(from.to_owned(), given.len);
        self.copy(&mut *given.content, &mut incomplete.file, progress)?;
        let source = incomplete.file.try_clone().and_then(FileSource::new).map_err(not_kept)?;
        self.wanted.accept(&source).map_err(|why| Failure::Refused(format!("not used: {why}")))?;
        incomplete.persist(&self.path).map_err(not_kept)?;
        // Before the process goes on, and may end.
        self.narration.detail(|| format!("{from}: downloaded"));
        self.state.lock().is_there = true;
        self.changed.notify_all();
        Ok(())
    }

    fn copy(&self, from: &mut dyn Read, to: &mut File, mut progress: Progress) -> Result<(), Failure> {
        let mut buffer = vec![0; 64 << 10];
        let (mut total, mut window_bytes, mut window_start) = (0_u64, 0_u64, Instant::now());
        loop {
            let len = match from.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Failure::Broken(error.to_string())),
            };
            total += len as u64;
            progress.came(total);
            if total > self.max_size {
                return Err(Failure::Refused(format!("more than {} bytes", self.max_size)));
            }
            window_bytes += len as u64;
            if !self.timeout.is_zero() && window_start.elapsed() >= self.timeout {
                if window_bytes < LEAST_BYTES {
                    let seconds = self.timeout.as_secs();
                    return Err(Failure::Refused(format!("less than 100 KB in {seconds} s")));
                }
                (window_bytes, window_start) = (0, Instant::now());
            }
            let written = to.write_all(&buffer[..len]);
            written.map_err(|error| Failure::Refused(format!("{}: {error}", self.path.display())))?;
        }
    }
}

/// A server in the race.
pub(super) struct Entrant {
    pub(super) server: Arc<Server>,
    pub(super) race: Arc<Race>,
}

impl Entrant {
    /// Asks the server, in a thread of its own: a server that is slow does not hold up the others' file.
    pub(super) fn start(self) {
        let (race, shown) = (self.race.clone(), self.server.shown());
        let run = move || {
            let (race, shown) = (self.race.clone(), self.server.shown());
            let result = catch_unwind(AssertUnwindSafe(|| self.run()));
            finish(&race, &shown, result.unwrap_or_else(|_| Err(Failure::Refused("a panic".to_owned()))));
        };
        let started = thread::Builder::new().name("debuginfod".to_owned()).spawn(run);
        if let Err(error) = started {
            finish(&race, &shown, Err(Failure::Refused(error.to_string())));
        }
    }

    fn run(&self) -> Result<(), Failure> {
        let mut tries_left = self.race.retries;
        loop {
            match self.try_once() {
                Err(Failure::Broken(_)) if tries_left > 0 && !self.race.is_over() => tries_left -= 1,
                result => return result,
            }
        }
    }

    fn try_once(&self) -> Result<(), Failure> {
        let Wanted { id, kind, .. } = &self.race.wanted;
        let from = format!("{}/buildid/{id}/{}", self.server.shown().trim_end_matches('/'), kind.name());
        let result = self.server.get(id, *kind).and_then(|given| self.race.deliver(given, &from));
        if let Err(why) = &result {
            self.race.narration.detail(|| format!("{from}: {why}"));
        }
        result
    }
}

fn finish(race: &Race, shown: &str, result: Result<(), Failure>) {
    let mut state = race.state.lock();
    if let Err(Failure::Broken(why) | Failure::Refused(why)) = result {
        state.failures.push(format!("{shown}: {why}"));
    }
    state.running -= 1;
    drop(state);
    race.changed.notify_all();
}
