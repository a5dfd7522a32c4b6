//! Input files, whole, with names for messages.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};

use crate::otlp::read::{Message, read};

/// A file and its bytes.
#[derive(Debug)]
pub(super) struct Input {
    /// Its path; `-` is standard input.
    pub(super) path: PathBuf,
    bytes: Vec<u8>,
}

impl Input {
    /// Reads a file.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let bytes = if path == Path::new("-") {
            let mut bytes = Vec::new();
            std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
        } else {
            std::fs::read(path)
        };
        let bytes = bytes.with_context(|| path.display().to_string())?;
        Ok(Self { path: path.to_owned(), bytes })
    }

    /// Reads files that must be readable to their ends, so that nothing of them is shown where they are not.
    pub(super) fn open_whole(paths: &[PathBuf]) -> anyhow::Result<Vec<Self>> {
        let inputs = paths.iter().map(|path| Self::open(path)).collect::<Result<Vec<_>, _>>()?;
        for input in &inputs {
            input.messages().try_for_each(|message| message.map(drop))?;
        }
        Ok(inputs)
    }

    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The messages; errors name the file. A file without any is an error, so that it is not
    /// taken for one without samples.
    pub(super) fn messages(&self) -> impl Iterator<Item = anyhow::Result<Message>> {
        let file = self.path.display();
        let mut messages = read(&self.bytes).peekable();
        let none = messages.peek().is_none();
        let none = none.then(|| Err(anyhow!("{file}: no message in its {} bytes", self.bytes.len())));
        messages
            .map(move |message| message.map_err(|error| anyhow!("{}: {error}", self.path.display())))
            .chain(none)
    }
}
