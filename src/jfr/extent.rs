//! How far a chunk goes whose header does not say it, found as its bytes come.

use super::chunk::{begins_chunk, is_cut};
use super::cursor::Cursor;
use super::framing::Frame;
use super::header::{ChunkHeader, HEADER_LEN};

/// Goes from event to event, and remembers how far it came.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    framed: usize,
    compressed: bool,
}

impl Extent {
    /// At the first event of a chunk with this header.
    pub fn new(header: &ChunkHeader) -> Self {
        Self { framed: HEADER_LEN, compressed: header.compressed_integers() }
    }

    /// Whether the chunk that these bytes begin with may go on behind them: so far there is event after event, and no
    /// other chunk. `bytes` are those of the call before, and more.
    pub fn is_open(&mut self, bytes: &[u8]) -> bool {
        let mut cursor = Cursor::new(bytes, self.framed, 0, self.compressed);
        while cursor.left() > 0 && !is_cut(cursor) {
            if begins_chunk(&bytes[cursor.at()..]) || Frame::read(&mut cursor).is_err() {
                return false;
            }
            self.framed = cursor.at();
        }
        !begins_chunk(&bytes[self.framed.min(bytes.len())..])
    }
}
