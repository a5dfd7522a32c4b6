//! Reads a file of any form as a stream of messages, with one message in memory at a time.
//!
//! In: a stream of bytes, gzipped or not. Out: messages that have been checked and stay encoded. The messages
//! before an error are delivered, then the error. A declared length allocates nothing until its bytes have
//! arrived. [`Limits`] bound the number of bytes.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

use super::bounds::MESSAGE_BYTES;
use super::encoded::EncodedMessage;
use super::framing::{self, Form, PREFIX};
use super::json_document::DocumentEnd;
use super::read_error::{ErrorKind, Notes, ReadError};
use super::{read_json, read_protobuf};

/// The number of bytes that are read at a time, and that a file's form is detected by.
const PART: usize = 1 << 16;
/// The number of bytes that tell whether a file is compressed.
const MAGIC: usize = 2;

/// Limits on the bytes that are read.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most bytes that a compressed file may have after decompression.
    pub max_bytes: usize,
    /// The most bytes of a message, after decompression.
    pub max_message: usize,
}

impl Default for Limits {
    /// 1 GiB for a compressed file after decompression, and 2 GiB for a message.
    fn default() -> Self {
        Self { max_bytes: 1 << 30, max_message: MESSAGE_BYTES }
    }
}

/// The reason why there is no further message.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The bytes cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The bytes are not what they should be.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The messages of a file. The iterator ends after the first error.
pub struct Reader<'r> {
    from: Source<'r>,
    form: Option<Form>,
    index: usize,
    limits: Limits,
    done: bool,
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("form", &self.form).field("index", &self.index).finish_non_exhaustive()
    }
}

impl<'r> Reader<'r> {
    /// Reads a file within the usual limits.
    ///
    /// # Errors
    /// If the first bytes cannot be read.
    pub fn new(from: impl Read + 'r) -> io::Result<Self> {
        Self::within(from, Limits::default())
    }

    /// Reads a file within the caller's limits.
    ///
    /// # Errors
    /// If the first bytes cannot be read.
    pub fn within(mut from: impl Read + 'r, limits: Limits) -> io::Result<Self> {
        let mut first = Vec::new();
        from.by_ref().take(MAGIC as u64).read_to_end(&mut first)?;
        let compressed = framing::is_gzip(&first);
        let whole = io::Cursor::new(first).chain(from);
        let from: Box<dyn Read + 'r> = match compressed {
            true => Box::new(MultiGzDecoder::new(whole)),
            false => Box::new(whole),
        };
        let most = if compressed { limits.max_bytes as u64 } else { u64::MAX };
        let from =
            Source { from, compressed, most, kept: Vec::new(), start: 0, at: 0, ended: false, broken: None };
        Ok(Self { from, form: None, index: 0, limits, done: false })
    }

    /// How many bytes have been read, after decompression.
    pub fn bytes_read(&self) -> u64 {
        self.from.at
    }

    fn step(&mut self) -> Result<Option<UncheckedMessage>, Failure> {
        let form = match self.form {
            Some(form) => form,
            None => {
                let form = self.detect()?;
                *self.form.insert(form)
            }
        };
        let start = self.from.at;
        let (bytes, offset) = match form {
            Form::Plain => (self.from.take_all(self.limits.max_message)?, start),
            Form::LengthPrefixed => {
                let Some(bytes) = self.frame()? else { return Ok(None) };
                (bytes, start + PREFIX as u64)
            }
            Form::Json => {
                self.from.skip_space()?;
                let start = self.from.at;
                (self.document()?, start)
            }
        };
        let broken = self.from.broken.clone();
        if form != Form::LengthPrefixed && (bytes.is_empty() || broken.is_some()) {
            return Ok(None);
        }
        let (index, compressed) = (self.index, self.from.compressed);
        Ok(Some(UncheckedMessage { bytes, form, index, offset, compressed, broken }))
    }

    /// The next message, which is still to be checked; `None` at the end. Messages after one that turns out
    /// to be broken must not be used.
    pub fn next_unchecked(&mut self) -> Option<Result<UncheckedMessage, Failure>> {
        if self.done {
            return None;
        }
        let result = self.step().transpose();
        if let Some(Ok(_)) = result {
            self.index += 1;
            return result;
        }
        self.done = true;
        // The reason why decompression stopped also explains the truncation at the end, so it takes
        // precedence.
        let error = match (self.from.broken.take(), result) {
            (_, Some(Err(Failure::Io(error)))) => return Some(Err(Failure::Io(error))),
            (Some(broken), _) => broken,
            (None, Some(Err(Failure::Read(error)))) => error,
            (None, _) => return None,
        };
        Some(Err(ReadError { compressed: self.from.compressed, message: self.index, ..error }.into()))
    }

    /// Detects the form by the first bytes if they suffice; otherwise by all bytes.
    fn detect(&mut self) -> Result<Form, Failure> {
        let first = self.from.peek(PART)?;
        let whole = first.len() < PART;
        match framing::detect_by_first(first, whole) {
            Some(form) => Ok(form?),
            None => {
                let bytes = self.from.take_all(self.limits.max_message)?;
                let form = framing::detect(&bytes);
                self.from.put_back(bytes);
                Ok(form?)
            }
        }
    }

    /// The bytes of the next length-prefixed message; `None` at the end.
    fn frame(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let start = self.from.at;
        let error = |kind, detail: String| ReadError::new(kind, start, detail);
        let prefix = self.from.take(PREFIX)?;
        let Ok(prefix) = <[u8; PREFIX]>::try_from(&*prefix) else {
            let detail = format!("truncated: {} of the {PREFIX} bytes of a length prefix", prefix.len());
            let truncated = error(ErrorKind::FrameTruncated, detail);
            return if prefix.is_empty() { Ok(None) } else { Err(truncated.into()) };
        };
        let length = u32::from_be_bytes(prefix) as usize;
        if length > self.limits.max_message {
            let most = self.limits.max_message;
            let detail = format!("a message of {length} bytes: more than {most}");
            return Err(error(ErrorKind::TooLarge, detail).into());
        }
        let bytes = self.from.take(length)?;
        if bytes.len() < length {
            let detail =
                format!("truncated: a message of {length} bytes is announced and {} follow", bytes.len());
            return Err(error(ErrorKind::FrameTruncated, detail).into());
        }
        Ok(Some(bytes))
    }

    /// The text of the next document. If the document does not end, the result is the rest of the text.
    fn document(&mut self) -> Result<Vec<u8>, Failure> {
        let mut text = Vec::new();
        let mut end = DocumentEnd::default();
        loop {
            let part = self.from.peek(1)?;
            let (length, ends) = match end.position(part) {
                Some(position) => (position + 1, true),
                None => (part.len(), part.is_empty()),
            };
            self.from.take_to(&mut text, length)?;
            if ends {
                return Ok(text);
            }
            if text.len() > self.limits.max_message {
                let start = self.from.at - text.len() as u64;
                let detail = format!("a document of more than {} bytes", self.limits.max_message);
                return Err(ReadError::new(ErrorKind::TooLarge, start, detail).into());
            }
        }
    }
}

impl Iterator for Reader<'_> {
    type Item = Result<EncodedMessage, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        let message = match self.next_unchecked()? {
            Ok(message) => message.check(),
            Err(failure) => return Some(Err(failure)),
        };
        self.done |= message.is_err();
        Some(message.map_err(Failure::Read))
    }
}

/// A message that has been read from a file, but not been checked.
#[derive(Debug)]
pub struct UncheckedMessage {
    /// The message in the file's form, without a length prefix.
    bytes: Vec<u8>,
    form: Form,
    index: usize,
    offset: u64,
    compressed: bool,
    /// The reason why decompression stopped behind the message.
    broken: Option<ReadError>,
}

impl UncheckedMessage {
    /// The size in the file, in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The form of the file's messages.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Indexes the message, whose bytes an earlier reading has checked. Its notes are left out.
    ///
    /// # Errors
    /// If the bytes are too many, or a document is not JSON.
    pub fn trusted(self) -> Result<EncodedMessage, ReadError> {
        if self.form == Form::Json {
            return self.check();
        }
        let Self { bytes, form, index, offset, compressed, .. } = self;
        let size = bytes.len() as u64;
        let mut message = EncodedMessage::unchecked(bytes, form, size, Notes::default())?;
        (message.index, message.compressed, message.offset) = (index, compressed, offset);
        Ok(message)
    }

    /// Checks and indexes the message.
    ///
    /// # Errors
    /// If the bytes are not what they should be.
    pub fn check(self) -> Result<EncodedMessage, ReadError> {
        let Self { bytes, form, index, offset, compressed, broken } = self;
        let checked = match form {
            Form::Plain | Form::LengthPrefixed => of_protobuf(bytes, form),
            Form::Json => of_json(bytes),
        };
        let mut message = checked.map_err(|error| {
            let error = broken.unwrap_or_else(|| shift(error, offset));
            ReadError { compressed, message: index, ..error }
        })?;
        (message.index, message.compressed, message.offset) = (index, compressed, offset);
        Ok(message)
    }
}

fn of_protobuf(bytes: Vec<u8>, form: Form) -> Result<EncodedMessage, ReadError> {
    let notes = read_protobuf::check(&bytes)?;
    let size = bytes.len() as u64;
    EncodedMessage::of_checked(bytes, form, size, notes)
}

fn of_json(text: Vec<u8>) -> Result<EncodedMessage, ReadError> {
    let (bytes, notes, size) = read_json::transcode_first(&text)?;
    drop(text);
    read_json::check(bytes, notes, size)
}

/// Converts an error of a message to an error of its file.
fn shift(error: ReadError, start: u64) -> ReadError {
    ReadError { offset: error.offset + start, ..error }
}

/// Reserves room for `more` bytes, or for a quarter of the present length if that is more. Vec's own growth
/// would double the capacity.
fn reserve(bytes: &mut Vec<u8>, more: usize) {
    if bytes.capacity() - bytes.len() < more {
        bytes.reserve_exact(more.max(bytes.len() / 4));
    }
}

/// A stream of bytes, some of which are kept for later.
struct Source<'r> {
    from: Box<dyn Read + 'r>,
    compressed: bool,
    /// The most bytes that may arrive.
    most: u64,
    /// The bytes that have arrived. The ones before `start` have been taken.
    kept: Vec<u8>,
    start: usize,
    /// The number of bytes that have been taken.
    at: u64,
    ended: bool,
    /// The reason why decompression stopped early.
    broken: Option<ReadError>,
}

impl Source<'_> {
    /// Appends more bytes to the kept ones; at the end of the stream, none.
    fn fill(&mut self) -> io::Result<()> {
        self.kept.drain(..self.start);
        self.start = 0;
        let before = self.kept.len();
        let came = self.at + before as u64;
        while !self.ended {
            self.kept.resize(before + PART, 0);
            let read = self.from.read(&mut self.kept[before..]);
            let left = usize::try_from(self.most - came).unwrap_or(usize::MAX);
            self.kept.truncate(before + read.as_ref().map_or(0, |&count| count.min(left)));
            match read {
                Ok(count) => {
                    self.ended = count == 0 || count > left;
                    if count > left {
                        let detail = format!("more than {} bytes", self.most);
                        self.broken = Some(ReadError::new(ErrorKind::TooLarge, self.most, detail));
                    }
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // An error of the operating system is not the file's fault.
                Err(error) if self.compressed && error.raw_os_error().is_none() => {
                    let detail = format!("gzip stream broken: {error}");
                    self.broken = Some(ReadError::new(ErrorKind::GzipCorrupt, came, detail));
                    self.ended = true;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The next bytes, without taking them: at least `count` of them, if there are that many.
    fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        while self.kept.len() - self.start < count && !self.ended {
            self.fill()?;
        }
        Ok(&self.kept[self.start..])
    }

    /// Takes `count` bytes, or fewer at the end of the stream.
    fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.take_to(&mut bytes, count)?;
        Ok(bytes)
    }

    fn take_to(&mut self, bytes: &mut Vec<u8>, count: usize) -> io::Result<()> {
        let end = bytes.len() + count;
        while bytes.len() < end {
            let part = self.peek(1)?;
            let part = &part[..part.len().min(end - bytes.len())];
            if part.is_empty() {
                break;
            }
            reserve(bytes, part.len());
            bytes.extend_from_slice(part);
            let taken = part.len();
            self.skip(taken);
        }
        Ok(())
    }

    /// Takes all remaining bytes, which must not exceed `most`.
    fn take_all(&mut self, most: usize) -> Result<Vec<u8>, Failure> {
        let bytes = match self.ended && self.start == 0 {
            // All bytes have been kept already, because they decided the form.
            true => {
                self.at += self.kept.len() as u64;
                std::mem::take(&mut self.kept)
            }
            false => self.take(most.saturating_add(1))?,
        };
        match bytes.len() > most {
            true => Err(ReadError::new(
                ErrorKind::TooLarge,
                self.at - bytes.len() as u64,
                format!("a message of more than {most} bytes"),
            )
            .into()),
            false => Ok(bytes),
        }
    }

    /// Puts back the bytes that `take_all` returned.
    fn put_back(&mut self, bytes: Vec<u8>) {
        self.at -= bytes.len() as u64;
        (self.kept, self.start) = (bytes, 0);
    }

    /// Skips bytes that have been looked at.
    fn skip(&mut self, count: usize) {
        self.start += count;
        self.at += count as u64;
    }

    fn skip_space(&mut self) -> io::Result<()> {
        loop {
            let part = self.peek(1)?;
            let space = part.len() - part.trim_ascii_start().len();
            let is_all = space > 0 && space == part.len();
            self.skip(space);
            if !is_all {
                return Ok(());
            }
        }
    }
}
