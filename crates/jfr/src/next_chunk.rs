//! Finds the chunk after a truncated one, whose end is not where its header says: another recording may
//! follow it in the file.

use super::cursor::ChunkCursor;
use super::framing::{CHECKPOINT, EventPlace, METADATA, frame_at};
use super::header::{ChunkHeader, HEADER_LEN, begins_chunk};
use super::known_metadata::KnownMetadata;

/// The most places that are examined closely. HotSpot's checkpoints contain a copy of the chunk's header for
/// each flush; hardly any of these copies is examined closely.
const MOST_CANDIDATES: u32 = 64;

/// The most bytes of an event's size and type id.
const EVENT_HEAD_LEN: usize = 5 + 9;

/// The result of a search for a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkSearch {
    /// A chunk begins at this offset.
    At(usize),
    /// A chunk may begin in the bytes. A search in `needed` bytes in all will decide.
    Perhaps { needed: usize },
    /// No chunk begins in the bytes.
    Nothing,
}

/// Finds the chunk after the one at the beginning of `bytes`, if that one has been truncated. Only the range
/// in which a chunk may begin is searched, so that no byte of a recording is searched again for each of many
/// chunks.
pub(super) fn find(bytes: &[u8], header: &ChunkHeader) -> ChunkSearch {
    let size = usize::try_from(header.size).ok().filter(|&size| size >= HEADER_LEN && header.is_finished());
    match size {
        Some(size) if is_intact(bytes, header) && is_followed(bytes, size) => ChunkSearch::Nothing,
        Some(size) => find_before(size.min(bytes.len()), bytes),
        None if is_framed(bytes, header) => ChunkSearch::Nothing,
        None => find_before(bytes.len(), bytes),
    }
}

/// Whether the first `size` bytes are followed by another chunk or by nothing.
fn is_followed(bytes: &[u8], size: usize) -> bool {
    bytes.len() <= size || begins_chunk(&bytes[size..])
}

/// Whether metadata and checkpoint are where the header says. If so, the chunk also ends where the header
/// says.
fn is_intact(bytes: &[u8], header: &ChunkHeader) -> bool {
    let size = usize::try_from(header.size).ok().filter(|&size| size <= bytes.len());
    let Some(bytes) = size.map(|size| &bytes[..size]) else { return false };
    let cursor = ChunkCursor::new(bytes, 0, 0, header.compressed_integers());
    [(header.metadata_offset, METADATA), (header.checkpoint_offset, CHECKPOINT)]
        .into_iter()
        .all(|(at, of)| frame_at(cursor, at).is_ok_and(|frame| frame.type_id == of))
}

/// Whether the bytes are a sequence of events up to their end or to the next chunk.
fn is_framed(bytes: &[u8], header: &ChunkHeader) -> bool {
    let mut cursor = ChunkCursor::new(bytes, HEADER_LEN, 0, header.compressed_integers());
    while cursor.left() > 0 && !begins_chunk(&bytes[cursor.at()..]) {
        if EventPlace::read(&mut cursor).is_err() {
            return false;
        }
    }
    true
}

/// The first place before `limit` at which a chunk header begins whose chunk has metadata.
fn find_before(limit: usize, bytes: &[u8]) -> ChunkSearch {
    let mut candidates = MOST_CANDIDATES;
    let mut found = ChunkSearch::Nothing;
    let mut at = 1;
    while candidates > 0
        && let Some(next) = bytes.get(at..limit).and_then(|rest| rest.iter().position(|&byte| byte == b'F'))
    {
        at += next;
        if begins_chunk(&bytes[at..])
            && let Ok(header) = ChunkHeader::parse(&bytes[at..], 0)
        {
            match leads_to_metadata(&bytes[at..], &header, &mut candidates) {
                ChunkSearch::At(_) => return ChunkSearch::At(at),
                ChunkSearch::Perhaps { needed } if found == ChunkSearch::Nothing => {
                    found = ChunkSearch::Perhaps { needed: at.saturating_add(needed) };
                }
                ChunkSearch::Perhaps { .. } | ChunkSearch::Nothing => {}
            }
        }
        at += 1;
    }
    found
}

/// Whether metadata is where the header of a chunk says. async-profiler and Datadog's profiler write the
/// metadata first, and its offset into the header only when the chunk ends.
fn leads_to_metadata(bytes: &[u8], header: &ChunkHeader, candidates: &mut u32) -> ChunkSearch {
    let at = if header.metadata_offset > 0 { header.metadata_offset } else { HEADER_LEN as i64 };
    let Some(offset) = usize::try_from(at).ok() else { return ChunkSearch::Nothing };
    let head_end = offset.saturating_add(EVENT_HEAD_LEN);
    if head_end > bytes.len() {
        let is_credible = header.size > at && header.clock.ticks_per_second > 0;
        return if is_credible { ChunkSearch::Perhaps { needed: head_end } } else { ChunkSearch::Nothing };
    }
    let cursor = ChunkCursor::new(bytes, 0, 0, header.compressed_integers());
    match frame_at(cursor, at) {
        Ok(frame) if frame.type_id == METADATA => {
            *candidates -= 1;
            match KnownMetadata::default().read(cursor, &frame) {
                Ok(metadata) if !metadata.all().is_empty() => ChunkSearch::At(0),
                _ => ChunkSearch::Nothing,
            }
        }
        Ok(_) => ChunkSearch::Nothing,
        // The event is truncated, or this is not an event.
        Err(_) => {
            let mut start = cursor;
            start.seek(offset);
            let size = start.int().map_or(0, |size| size as u32 as usize);
            let needed = offset.saturating_add(size);
            let is_metadata = start.long() == Ok(METADATA);
            if needed > bytes.len() && is_metadata {
                ChunkSearch::Perhaps { needed }
            } else {
                ChunkSearch::Nothing
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(size: i64, metadata: i64) -> Vec<u8> {
        let mut bytes = b"FLR\0\0\x02\0\x01".to_vec();
        for word in [size, size - 1, metadata, 1_700_000_000_000_000_000, 5_000, 77, 1_000_000] {
            bytes.extend(word.to_be_bytes());
        }
        bytes.extend([0, 0, 0, 1]);
        bytes
    }

    #[test]
    fn a_copy_of_a_header_is_no_chunk() {
        // A copy in a checkpoint, followed by arbitrary bytes.
        let copy = [&[9; 30][..], &header(1_000, 90), &[7; 200]].concat();
        assert_eq!(find_before(copy.len(), &copy), ChunkSearch::Nothing);
        // A metadata event of 12 bytes, which describes no types.
        let empty = [&[9; 30][..], &header(1_000, 90), &[7; 22], &[12], &[0; EVENT_HEAD_LEN]].concat();
        assert_eq!(find_before(empty.len(), &empty), ChunkSearch::Nothing);
    }

    #[test]
    fn an_undecided_header_requests_the_missing_bytes() {
        let cut = [&[9; 30][..], &header(1_000, 90)].concat();
        assert_eq!(find_before(cut.len(), &cut), ChunkSearch::Perhaps { needed: 30 + 90 + EVENT_HEAD_LEN });
        // The metadata event is 50 bytes long.
        let cut = [&cut[..], &[7; 22], &[50], &[0; EVENT_HEAD_LEN]].concat();
        assert_eq!(find_before(cut.len(), &cut), ChunkSearch::Perhaps { needed: 30 + 90 + 50 });
    }
}
