//! Input files as streams of messages. Errors name the file.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_otlp::reader::{Reader, UncheckedMessage};

use super::spool;

/// A file that can be read several times, message by message.
#[derive(Debug)]
pub(super) struct Input {
    /// The file's path. `-` is standard input.
    pub(super) path: PathBuf,
    /// The file's length in bytes when it was opened. Bytes appended later are not read.
    length: u64,
    /// A copy of the input, if the input can be read only once.
    kept: Option<File>,
}

/// The state of a file's contents: a file that is written to gets another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileState {
    place: (u64, u64),
    length: u64,
    /// The last changes of the contents and of the file: seconds and nanoseconds.
    times: [(i64, i64); 2],
}

impl Input {
    /// Opens a file. Copies an input that can be read only once.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let name = || path.display().to_string();
        let kept = if path == Path::new("-") {
            Some(spool::kept(io::stdin().lock(), path)?)
        } else {
            let file = File::open(path).with_context(name)?;
            let metadata = file.metadata().with_context(name)?;
            let folder = path.display();
            anyhow::ensure!(!metadata.is_dir(), "{folder}: a folder; name its files, such as {folder}/*");
            let is_file = metadata.is_file();
            if is_file { None } else { Some(spool::kept(file, path)?) }
        };
        let length = match &kept {
            Some(file) => file.metadata(),
            None => std::fs::metadata(path),
        };
        Ok(Self { path: path.to_owned(), length: length.with_context(name)?.len(), kept })
    }

    /// Opens files and checks that each can be read to its end, so that no part of a broken file is shown.
    pub(super) fn open_whole(paths: &[PathBuf]) -> anyhow::Result<Vec<Self>> {
        let inputs = paths.iter().map(|path| Self::open(path)).collect::<Result<Vec<_>, _>>()?;
        for input in &inputs {
            input.messages()?.try_for_each(|message| message.map(drop))?;
        }
        Ok(inputs)
    }

    /// The number of bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// The file's bytes from the first on.
    pub(super) fn bytes(&self) -> anyhow::Result<impl Read + use<>> {
        let file = match &self.kept {
            Some(kept) => kept.try_clone().and_then(|mut file| file.rewind().map(|()| file)),
            None => File::open(&self.path),
        };
        Ok(file.with_context(|| self.path.display().to_string())?.take(self.length))
    }

    /// The messages, one at a time. Errors name the file. A file without any message is an error, so that it
    /// is not mistaken for one without samples.
    pub(super) fn messages(&self) -> anyhow::Result<impl Iterator<Item = anyhow::Result<EncodedMessage>>> {
        let mut unchecked = self.unchecked_messages()?;
        let mut is_broken = false;
        Ok(std::iter::from_fn(move || {
            let message = if is_broken { None } else { unchecked.next() }?;
            let message = message.and_then(|message| self.check(message));
            is_broken = message.is_err();
            Some(message)
        }))
    }

    /// Messages before their check by [`Input::check`]. Messages after a broken one must not be used.
    pub(super) fn unchecked_messages(
        &self,
    ) -> anyhow::Result<impl Iterator<Item = anyhow::Result<UncheckedMessage>>> {
        let file = || self.path.display().to_string();
        let mut reader = Reader::new(self.bytes()?).with_context(file)?;
        let mut messages = std::iter::from_fn(move || reader.next_unchecked()).peekable();
        let none = messages.peek().is_none();
        let none = none.then(|| Err(anyhow!("{}: no message in its {} bytes", file(), self.length)));
        Ok(messages.map(|message| message.map_err(|error| self.named(error))).chain(none))
    }

    /// The state of the file's contents; `None` if the file system does not tell.
    pub(super) fn state(&self) -> Option<FileState> {
        let metadata = match &self.kept {
            Some(file) => file.metadata(),
            None => std::fs::metadata(&self.path),
        };
        let of = metadata.ok()?;
        let times = [(of.mtime(), of.mtime_nsec()), (of.ctime(), of.ctime_nsec())];
        Some(FileState { place: (of.dev(), of.ino()), length: of.len(), times })
    }

    /// A message of this file whose bytes an earlier reading has checked. Errors name the file.
    pub(super) fn trusted(&self, message: UncheckedMessage) -> anyhow::Result<EncodedMessage> {
        message.trusted().map_err(|error| self.named(error))
    }

    /// Checks a message of this file. Errors name the file.
    pub(super) fn check(&self, message: UncheckedMessage) -> anyhow::Result<EncodedMessage> {
        message.check().map_err(|error| self.named(error))
    }

    fn named(&self, error: impl std::fmt::Display) -> anyhow::Error {
        anyhow!("{}: {error}", self.path.display())
    }
}
