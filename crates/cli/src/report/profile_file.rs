//! An input file with its content.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use otlpprof_otlp::encoded::EncodedMessage;

use super::content::Content;
use super::made_messages::MadeMessages;
use super::messages::{self, Findings, ReadMessage};
use crate::input::{FileState, Input};
use crate::terminal;

/// The size in bytes from which on a file in another format than OTLP is converted once.
const LARGE_BYTES: u64 = 1 << 22;

/// A file of profiles in any format that [`Content`] names. It can be read several times.
#[derive(Debug)]
pub(crate) struct ProfileFile {
    pub(crate) input: Input,
    pub(crate) content: Content,
    /// The unit of collapsed stacks, if it is chosen.
    pub(super) unit: Option<String>,
    /// Whether the line about parts that are left out has been written.
    is_remarked: AtomicBool,
    /// The messages that the file was converted to, as far as a reading has kept them.
    made: Option<File>,
    /// The state of the file before a reading that has checked all messages.
    checked: Option<FileState>,
}

impl ProfileFile {
    /// Opens a file, and detects its content.
    ///
    /// # Errors
    /// The file cannot be read, or must be unpacked first.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let input = Input::open(path)?;
        let content = Content::of(&input)?;
        let (is_remarked, made, checked) = Default::default();
        Ok(Self { input, content, unit: None, is_remarked, made, checked })
    }

    /// Calls `take` with each message. Returns the line about a damaged recording, of which everything that
    /// could be read has been taken. The first reading writes a line to standard error about parts that are
    /// left out, such as comments.
    pub(crate) fn each_message(
        &self,
        take: &mut dyn FnMut(EncodedMessage),
    ) -> anyhow::Result<Option<String>> {
        self.each_read(&mut |message| {
            take(self.check(message)?);
            Ok(())
        })
    }

    /// Whether the messages of a reading are kept for the next one: to convert a large file takes long.
    pub(super) fn keeps_messages(&self) -> bool {
        self.content != Content::Otlp && self.input.length() >= LARGE_BYTES
    }

    /// Keeps the messages that a reading has made of the file.
    pub(super) fn keep(&mut self, made: MadeMessages) {
        self.made = made.into_file();
    }

    /// Notes that a reading has checked all messages, since the file had this state.
    pub(super) fn note_checked(&mut self, state: Option<FileState>) {
        self.checked = state;
    }

    /// Checks a message of this file, unless an earlier reading has.
    pub(super) fn check(&self, message: ReadMessage) -> anyhow::Result<EncodedMessage> {
        let is_trusted = self.made.is_some() || self.checked.is_some() && self.checked == self.input.state();
        message.check(&self.input, is_trusted)
    }

    /// As [`ProfileFile::each_message`], with messages that are still to be checked. Ends at an error of
    /// `take`.
    pub(super) fn each_read(
        &self,
        take: &mut dyn FnMut(ReadMessage) -> anyhow::Result<()>,
    ) -> anyhow::Result<Option<String>> {
        if let Some(made) = &self.made {
            messages::each_made(&self.input, made, take)?;
            return Ok(None);
        }
        let Findings { damage, remark } =
            messages::each_message(&self.input, self.content, self.unit.as_deref(), take)?;
        if let Some(remark) = remark
            && !self.is_remarked.swap(true, Relaxed)
        {
            writeln!(terminal::stderr(), "{remark}")?;
        }
        Ok(damage)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn a_file_that_changes_between_two_readings_is_checked_again() {
        let file = tempfile::NamedTempFile::new().unwrap();
        // A message with an empty dictionary, after its length.
        fs::write(file.path(), [0, 0, 0, 2, 0x12, 0]).unwrap();
        let mut opened = ProfileFile::open(file.path()).unwrap();
        opened.note_checked(opened.input.state());
        let read = |opened: &ProfileFile| {
            let mut messages = 0;
            opened.each_message(&mut |_| messages += 1).map(|_| messages)
        };
        assert_eq!(read(&opened).unwrap(), 1);
        // The dictionary is longer than the message.
        fs::write(file.path(), [0, 0, 0, 2, 0x12, 7]).unwrap();
        file.as_file().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert!(read(&opened).unwrap_err().to_string().contains("truncated"));
    }
}
