//! The messages that a file in another format was converted to, in a temporary file: a second conversion
//! would take longer than to read them.

use std::fs::File;
use std::io::{self, BufWriter};

use otlpprof_otlp::encoded::EncodedMessage;

use crate::spool;

/// The bytes that are written at once.
const BUFFER: usize = 1 << 18;

/// Messages that are being kept, each after its length.
#[derive(Debug)]
pub(super) struct MadeMessages {
    /// `None` once the messages could not be written.
    out: Option<BufWriter<File>>,
}

impl MadeMessages {
    /// Keeps messages from now on.
    pub(super) fn new() -> Self {
        Self { out: spool::empty().ok().map(|file| BufWriter::with_capacity(BUFFER, file)) }
    }

    /// Keeps a message.
    pub(super) fn add(&mut self, message: &EncodedMessage) {
        if let Some(out) = &mut self.out
            && write(message.bytes(), out).is_err()
        {
            self.out = None;
        }
    }

    /// The file of all messages; `None` if there was no room for them.
    pub(super) fn into_file(self) -> Option<File> {
        self.out?.into_inner().ok()
    }
}

fn write(message: &[u8], out: &mut impl io::Write) -> io::Result<()> {
    let length = u32::try_from(message.len()).map_err(io::Error::other)?;
    out.write_all(&length.to_be_bytes())?;
    out.write_all(message)
}
