//! A cache of the metadata that was read last. Most chunks of a recording have identical metadata, which is
//! as long as thousands of events. If the bytes are equal, the parsed metadata is reused.

use std::sync::Arc;

use super::cursor::ChunkCursor;
use super::error::{JfrError, Problem};
use super::framing::{EventPlace, METADATA};
use super::metadata::Metadata;

/// The longest metadata that is cached, in bytes, since its bytes are kept too. No JVM writes longer
/// metadata.
const LONGEST_KEPT: usize = 4 << 20;

/// The metadata that was read last, and its bytes.
#[derive(Clone, Debug, Default)]
pub struct KnownMetadata {
    bytes: Vec<u8>,
    compressed: bool,
    metadata: Option<Arc<Metadata>>,
}

impl KnownMetadata {
    /// The metadata of this event, parsed or from the cache.
    pub(super) fn read(
        &mut self,
        cursor: ChunkCursor<'_>,
        frame: &EventPlace,
    ) -> Result<Arc<Metadata>, JfrError> {
        let mut cursor = cursor.up_to(frame.end);
        cursor.seek(frame.payload);
        if frame.type_id != METADATA {
            cursor.seek(frame.at);
            return Err(cursor.error(Problem::WrongEvent { found: frame.type_id, expected: METADATA }));
        }
        let start = cursor;
        let _start_ticks = cursor.long()?;
        let _duration_ticks = cursor.long()?;
        let _id = cursor.long()?;
        let (bytes, compressed) = (&cursor.bytes()[cursor.at()..], cursor.compressed());
        if let Some(known) = &self.metadata
            && self.compressed == compressed
            && self.bytes == bytes
        {
            return Ok(Arc::clone(known));
        }
        let metadata = Arc::new(Metadata::parse(start, &mut cursor)?);
        self.metadata = (bytes.len() <= LONGEST_KEPT).then(|| Arc::clone(&metadata));
        self.compressed = compressed;
        self.bytes.clear();
        if self.metadata.is_some() {
            self.bytes.extend_from_slice(bytes);
        }
        Ok(metadata)
    }
}
