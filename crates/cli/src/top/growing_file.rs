//! A file of messages that grows: protobuf with length prefixes, or lines of JSON.

use std::fs::{File, Metadata};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};

use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_otlp::reader::Reader;

/// Bytes of a length prefix.
const PREFIX: u64 = 4;
/// The highest first byte of a length prefix: the agent's messages have at most 64 MiB.
const MOST_FIRST: u8 = 4;

/// The form of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    LengthPrefixed,
    Lines,
}

/// A file that is read as it grows.
#[derive(Debug)]
pub(super) struct GrowingFile {
    path: PathBuf,
    file: File,
    form: Option<Form>,
    /// The end of the messages that have been read.
    at: u64,
}

/// A message's place in the file.
#[derive(Clone, Copy, Debug)]
struct MessageSpan {
    offset: u64,
    length: u64,
}

impl GrowingFile {
    /// Opens a file. It may be empty. `None` if its first bytes show that no agent writes to it.
    pub(super) fn open(path: &Path) -> anyhow::Result<Option<Self>> {
        let name = || path.display().to_string();
        if !path.metadata().with_context(name)?.is_file() {
            bail!("{}: is no file that grows; name the file that the agent writes to", name());
        }
        let file = File::open(path).with_context(name)?;
        let mut opened = Self { path: path.to_owned(), file, form: None, at: 0 };
        if opened.file.metadata().with_context(name)?.len() > 0 {
            match opened.detect().with_context(name)? {
                None => return Ok(None),
                form => opened.form = form,
            }
        }
        Ok(Some(opened))
    }

    /// Reads the messages that have been appended since the last call, the oldest first. Of many new messages
    /// those of the last `window_ns` nanoseconds are enough.
    pub(super) fn read(&mut self, window_ns: u64) -> anyhow::Result<Vec<EncodedMessage>> {
        self.follow()?;
        let places = self.new_places().with_context(|| self.path.display().to_string())?;
        let (mut messages, mut end_ns) = (Vec::new(), None);
        for place in places.into_iter().rev() {
            let message = self.message(place)?;
            let to_ns = end_of(&message);
            let last_ns = *end_ns.get_or_insert(to_ns);
            if to_ns.saturating_add(window_ns) < last_ns {
                break;
            }
            messages.push(message);
        }
        messages.reverse();
        Ok(messages)
    }

    /// Begins again if the file has been replaced or emptied.
    fn follow(&mut self) -> anyhow::Result<()> {
        let name = || self.path.display().to_string();
        let own = self.file.metadata().with_context(name)?;
        let identity = |metadata: &Metadata| (metadata.dev(), metadata.ino());
        let is_other = self.path.metadata().is_ok_and(|found| identity(&found) != identity(&own));
        if is_other {
            self.file = File::open(&self.path).with_context(name)?;
        }
        if is_other || own.len() < self.at {
            (self.form, self.at) = (None, 0);
        }
        Ok(())
    }

    /// The places of the whole messages after the last one.
    fn new_places(&mut self) -> anyhow::Result<Vec<MessageSpan>> {
        let length = self.file.metadata()?.len();
        if length == self.at {
            return Ok(Vec::new());
        }
        let form = match self.form {
            Some(form) => form,
            None => {
                let form =
                    self.detect()?.context("a file of another program has replaced the agent's file")?;
                *self.form.insert(form)
            }
        };
        match form {
            Form::LengthPrefixed => self.new_frames(length),
            Form::Lines => self.new_lines(),
        }
    }

    /// The form of the messages, by the first byte of the file.
    fn detect(&mut self) -> io::Result<Option<Form>> {
        let mut first = [0];
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_exact(&mut first)?;
        Ok(match first[0] {
            b'{' => Some(Form::Lines),
            0..=MOST_FIRST => Some(Form::LengthPrefixed),
            _ => None,
        })
    }

    fn new_frames(&mut self, length: u64) -> anyhow::Result<Vec<MessageSpan>> {
        let mut places = Vec::new();
        while length - self.at >= PREFIX {
            let mut prefix = [0; PREFIX as usize];
            self.file.seek(SeekFrom::Start(self.at))?;
            self.file.read_exact(&mut prefix)?;
            let place =
                MessageSpan { offset: self.at + PREFIX, length: u64::from(u32::from_be_bytes(prefix)) };
            if place.length > length - place.offset {
                break;
            }
            self.at = place.offset + place.length;
            places.push(place);
        }
        Ok(places)
    }

    fn new_lines(&mut self) -> anyhow::Result<Vec<MessageSpan>> {
        let mut places = Vec::new();
        self.file.seek(SeekFrom::Start(self.at))?;
        let mut from = BufReader::new(&self.file);
        let mut line = Vec::new();
        loop {
            line.clear();
            from.read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') {
                return Ok(places);
            }
            let length = line.len() as u64;
            places.push(MessageSpan { offset: self.at, length });
            self.at += length;
        }
    }

    fn message(&mut self, MessageSpan { offset, length }: MessageSpan) -> anyhow::Result<EncodedMessage> {
        let name = || format!("{}: at byte {offset}", self.path.display());
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(offset)).with_context(name)?;
        (&self.file).take(length).read_to_end(&mut bytes).with_context(name)?;
        match self.form {
            Some(Form::Lines) => {
                let message = Reader::new(&*bytes).with_context(name)?.next();
                let message = message.ok_or_else(|| anyhow!("an empty line")).with_context(name)?;
                message.with_context(name)
            }
            _ => EncodedMessage::of_protobuf(bytes).with_context(name),
        }
    }
}

/// The end of the time that a message covers: the end of its first profile, in nanoseconds since 1970.
fn end_of(message: &EncodedMessage) -> u64 {
    let first = message
        .resources()
        .flat_map(|resource| resource.scopes())
        .find_map(|scope| scope.profiles().next().map(|profile| profile.header()));
    first.map_or(0, |header| header.time_unix_nano.saturating_add(header.duration_nano))
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn whole_messages_are_read_once_whatever_their_form() {
        // Messages without profiles.
        let empty = [&[0, 0, 0, 0][..]; 3].concat();
        for (bytes, second) in [(&empty[..], 8), (&b"{}\n{}\n{}\n"[..], 6)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x");
            std::fs::write(&path, b"").unwrap();
            let mut growing = GrowingFile::open(&path).unwrap().unwrap();
            let mut append = OpenOptions::new().append(true).open(&path).unwrap();
            assert_eq!(growing.read(0).unwrap().len(), 0);
            // The second message is cut off.
            append.write_all(&bytes[..second - 1]).unwrap();
            assert_eq!(growing.read(0).unwrap().len(), 1);
            append.write_all(&bytes[second - 1..]).unwrap();
            assert_eq!(growing.read(0).unwrap().len(), 2);
            assert_eq!(growing.read(0).unwrap().len(), 0);
            // The file is replaced, then emptied.
            std::fs::write(folder.path().join("y"), bytes).unwrap();
            std::fs::rename(folder.path().join("y"), &path).unwrap();
            assert_eq!(growing.read(0).unwrap().len(), 3);
            std::fs::write(&path, b"").unwrap();
            assert_eq!(growing.read(0).unwrap().len(), 0);
        }
    }

    #[test]
    fn files_of_other_programs_do_not_grow() {
        let folder = tempfile::tempdir().unwrap();
        assert!(GrowingFile::open(folder.path()).unwrap_err().to_string().contains("no file that grows"));
        let path = folder.path().join("x");
        // A compressed file, and a recording.
        for first in [&b"\x1f\x8b"[..], b"FLR\0"] {
            std::fs::write(&path, b"").unwrap();
            let mut empty = GrowingFile::open(&path).unwrap().unwrap();
            std::fs::write(&path, first).unwrap();
            assert!(GrowingFile::open(&path).unwrap().is_none());
            let refused = format!("{:#}", empty.read(0).unwrap_err());
            assert!(refused.contains("a file of another program"), "{refused}");
        }
    }
}
