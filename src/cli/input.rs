//! Input files as streams of messages. Errors name the file.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};

use super::spool;
use crate::otlp::encoded::EncodedMessage;
use crate::otlp::reader::Reader;

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
        let file = || self.path.display().to_string();
        let mut messages = Reader::new(self.bytes()?).with_context(file)?.peekable();
        let none = messages.peek().is_none();
        let none = none.then(|| Err(anyhow!("{}: no message in its {} bytes", file(), self.length)));
        Ok(messages
            .map(move |message| message.map_err(|error| anyhow!("{}: {error}", self.path.display())))
            .chain(none))
    }
}
