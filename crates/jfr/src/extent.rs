//! Finds the end of a chunk whose header does not give its size, while its bytes arrive.

use super::cursor::ChunkCursor;
use super::framing::{EventPlace, is_cut};
use super::header::{ChunkHeader, HEADER_LEN, begins_chunk};

/// Walks the events of a chunk, and keeps the offset reached.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    framed: usize,
    compressed: bool,
}

impl Extent {
    /// Starts at the first event of a chunk with this header.
    pub fn new(header: &ChunkHeader) -> Self {
        Self { framed: HEADER_LEN, compressed: header.compressed_integers() }
    }

    /// Whether the chunk at the beginning of `bytes` may continue beyond them: so far they are a sequence of
    /// events, without another chunk. `bytes` must begin with the bytes of the previous call.
    pub fn is_open(&mut self, bytes: &[u8]) -> bool {
        let mut cursor = ChunkCursor::new(bytes, self.framed, 0, self.compressed);
        while cursor.left() > 0 && !is_cut(cursor) {
            if begins_chunk(&bytes[cursor.at()..]) || EventPlace::read(&mut cursor).is_err() {
                return false;
            }
            self.framed = cursor.at();
        }
        !begins_chunk(&bytes[self.framed.min(bytes.len())..])
    }
}
