//! Finds the chunk that follows one whose end is not where its header says: a recording that has been cut, with another one
//! behind it.

use super::chunk::{begins_chunk, frame_at};
use super::cursor::Cursor;
use super::framing::{CHECKPOINT, Frame, METADATA};
use super::header::{ChunkHeader, HEADER_LEN};
use super::known_metadata::KnownMetadata;

/// So many places are looked at closely. HotSpot's checkpoints hold copies of the chunk's header, one for each flush; of
/// these hardly any gets so far.
const MOST_CANDIDATES: u32 = 64;

/// Size and type of an event have no more bytes.
const EVENT_HEAD_LEN: usize = 5 + 9;

/// The result of a search for a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A chunk begins at this offset.
    At(usize),
    /// One may begin there, which more bytes would tell, so many in all.
    Perhaps { needed: usize },
    /// None.
    Nothing,
}

/// The chunk behind the one that these bytes begin with, if that one has been cut. Looked for where it may be alone, so that
/// no byte of a recording is looked at for each of many chunks.
pub(super) fn find(bytes: &[u8], header: &ChunkHeader) -> Found {
    let size = usize::try_from(header.size).ok().filter(|&size| size >= HEADER_LEN && header.is_finished());
    match size {
        Some(size) if is_intact(bytes, header) && is_followed(bytes, size) => Found::Nothing,
        Some(size) => find_before(size.min(bytes.len()), bytes),
        None if is_framed(bytes, header) => Found::Nothing,
        None => find_before(bytes.len(), bytes),
    }
}

/// Whether another chunk, or nothing, is behind so many bytes.
fn is_followed(bytes: &[u8], size: usize) -> bool {
    bytes.len() <= size || begins_chunk(&bytes[size..])
}

/// Whether metadata and constants are where the header says: then the chunk ends where it says as well.
fn is_intact(bytes: &[u8], header: &ChunkHeader) -> bool {
    let size = usize::try_from(header.size).ok().filter(|&size| size <= bytes.len());
    let Some(bytes) = size.map(|size| &bytes[..size]) else { return false };
    let cursor = Cursor::new(bytes, 0, 0, header.compressed_integers());
    [(header.metadata_offset, METADATA), (header.checkpoint_offset, CHECKPOINT)]
        .into_iter()
        .all(|(at, of)| frame_at(cursor, at).is_ok_and(|frame| frame.type_id == of))
}

/// Whether there is event after event to the end of the bytes or to the next chunk.
fn is_framed(bytes: &[u8], header: &ChunkHeader) -> bool {
    let mut cursor = Cursor::new(bytes, HEADER_LEN, 0, header.compressed_integers());
    while cursor.left() > 0 && !begins_chunk(&bytes[cursor.at()..]) {
        if Frame::read(&mut cursor).is_err() {
            return false;
        }
    }
    true
}

/// The first place before `limit` where a header leads to metadata.
fn find_before(limit: usize, bytes: &[u8]) -> Found {
    let mut candidates = MOST_CANDIDATES;
    let mut found = Found::Nothing;
    let mut at = 1;
    while candidates > 0
        && let Some(next) = bytes.get(at..limit).and_then(|rest| rest.iter().position(|&byte| byte == b'F'))
    {
        at += next;
        if begins_chunk(&bytes[at..])
            && let Ok(header) = ChunkHeader::parse(&bytes[at..], 0)
        {
            match leads_to_metadata(&bytes[at..], &header, &mut candidates) {
                Found::At(_) => return Found::At(at),
                Found::Perhaps { needed } if found == Found::Nothing => {
                    found = Found::Perhaps { needed: at.saturating_add(needed) };
                }
                Found::Perhaps { .. } | Found::Nothing => {}
            }
        }
        at += 1;
    }
    found
}

/// Whether the metadata of this header's chunk is where the header says. async-profiler and Datadog's profiler say it when
/// the chunk ends, and write the metadata first.
fn leads_to_metadata(bytes: &[u8], header: &ChunkHeader, candidates: &mut u32) -> Found {
    let at = if header.metadata_offset > 0 { header.metadata_offset } else { HEADER_LEN as i64 };
    let Some(offset) = usize::try_from(at).ok() else { return Found::Nothing };
    let telling = offset.saturating_add(EVENT_HEAD_LEN);
    if telling > bytes.len() {
        let is_credible = header.size > at && header.clock.ticks_per_second > 0;
        return if is_credible { Found::Perhaps { needed: telling } } else { Found::Nothing };
    }
    let cursor = Cursor::new(bytes, 0, 0, header.compressed_integers());
    match frame_at(cursor, at) {
        Ok(frame) if frame.type_id == METADATA => {
            *candidates -= 1;
            match KnownMetadata::default().read(cursor, &frame) {
                Ok(metadata) if !metadata.all().is_empty() => Found::At(0),
                _ => Found::Nothing,
            }
        }
        Ok(_) => Found::Nothing,
        // Cut within the event, or no event.
        Err(_) => {
            let mut start = cursor;
            start.seek(offset);
            let size = start.int().map_or(0, |size| size as u32 as usize);
            let needed = offset.saturating_add(size);
            let is_metadata = start.long() == Ok(METADATA);
            if needed > bytes.len() && is_metadata { Found::Perhaps { needed } } else { Found::Nothing }
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
        // As it stands in a checkpoint, with whatever behind it.
        let copy = [&[9; 30][..], &header(1_000, 90), &[7; 200]].concat();
        assert_eq!(find_before(copy.len(), &copy), Found::Nothing);
        // A size of three bytes and the type of metadata, which has no types.
        let empty = [&[9; 30][..], &header(1_000, 90), &[7; 22], &[12], &[0; EVENT_HEAD_LEN]].concat();
        assert_eq!(find_before(empty.len(), &empty), Found::Nothing);
    }

    #[test]
    fn what_cannot_be_told_yet_needs_so_many_bytes() {
        let cut = [&[9; 30][..], &header(1_000, 90)].concat();
        assert_eq!(find_before(cut.len(), &cut), Found::Perhaps { needed: 30 + 90 + EVENT_HEAD_LEN });
        // The event of metadata has 50 bytes.
        let cut = [&cut[..], &[7; 22], &[50], &[0; EVENT_HEAD_LEN]].concat();
        assert_eq!(find_before(cut.len(), &cut), Found::Perhaps { needed: 30 + 90 + 50 });
    }
}
