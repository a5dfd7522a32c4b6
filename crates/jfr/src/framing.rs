//! The boundaries and type ids of events: all that can be known without metadata.

use super::cursor::ChunkCursor;
use super::error::{JfrError, Problem};
use super::header::HEADER_LEN;

/// The type id of metadata events.
pub(super) const METADATA: i64 = 0;
/// The type id of checkpoint events, which hold constants.
pub(super) const CHECKPOINT: i64 = 1;

/// An event's place in its chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventPlace {
    /// The offset of the event's first byte.
    pub(super) at: usize,
    /// The offset of the first byte after the type id.
    pub(super) payload: usize,
    /// The offset after the event's last byte.
    pub(super) end: usize,
    pub(super) type_id: i64,
}

impl EventPlace {
    /// Reads the size and type id of the event at the cursor, and moves the cursor past the event. An error
    /// leaves the cursor in place.
    #[inline]
    pub(super) fn read(cursor: &mut ChunkCursor<'_>) -> Result<Self, JfrError> {
        // The cursor is not copied here: a copy for each event would stall on the position that was just
        // stored in the cursor.
        let start = cursor.at();
        Self::try_read(cursor).ok_or_else(|| {
            cursor.seek(start);
            impossible(*cursor)
        })
    }

    #[inline(always)]
    fn try_read(cursor: &mut ChunkCursor<'_>) -> Option<Self> {
        let (at, left) = (cursor.at(), cursor.left());
        let (size, type_id) = match cursor.short_pair() {
            Some((size, type_id)) => (size as usize, i64::from(type_id)),
            None => (cursor.int().ok()? as u32 as usize, cursor.long().ok()?),
        };
        if size > left || at + size < cursor.at() {
            return None;
        }
        let payload = cursor.at();
        cursor.seek(at + size);
        Some(Self { at, payload, end: at + size, type_id })
    }
}

/// The event at an offset that the header gives.
pub(super) fn frame_at(mut cursor: ChunkCursor<'_>, offset: i64) -> Result<EventPlace, JfrError> {
    let at = usize::try_from(offset).ok().filter(|&at| at >= HEADER_LEN && at < cursor.end());
    let Some(at) = at else { return Err(cursor.error(Problem::OutOfBounds)) };
    cursor.seek(at);
    EventPlace::read(&mut cursor)
}

/// Whether the event at the cursor may be valid but lacks its last bytes.
pub(super) fn is_cut(mut cursor: ChunkCursor<'_>) -> bool {
    let left = cursor.left();
    match cursor.int() {
        Ok(size) => size as u32 as usize > left || (size > 0 && cursor.long().is_err()),
        Err(_) => true,
    }
}

#[cold]
fn impossible(start: ChunkCursor<'_>) -> JfrError {
    let left = start.left();
    let mut cursor = start;
    let size = cursor.int().map_or(0, |size| u64::from(size as u32));
    start.error(Problem::EventSize { size, left })
}
