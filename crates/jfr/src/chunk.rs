//! One chunk: its index, with everything needed to read its events, and its constants.

use std::sync::Arc;

use super::cursor::ChunkCursor;
use super::error::{JfrError, Problem};
use super::framing::{CHECKPOINT, EventPlace, METADATA, frame_at, is_cut};
use super::header::{ChunkHeader, HEADER_LEN, begins_chunk};
use super::known_metadata::KnownMetadata;
use super::metadata::Metadata;
use super::next_chunk::{self, ChunkSearch};
use super::pools::Pools;
use super::types::{Constant, TypeIndex};

/// The index of a chunk: everything that is known of it except its bytes.
#[derive(Clone, Debug)]
pub(super) struct ChunkIndex {
    pub(super) header: ChunkHeader,
    /// The chunk's offset in the recording.
    pub(super) base: u64,
    pub(super) metadata: Arc<Metadata>,
    /// The offset in the recording of the metadata event.
    pub(super) metadata_at: u64,
    pub(super) pools: Pools,
}

/// A chunk of a recording in memory.
#[derive(Clone, Debug)]
pub struct OpenChunk<'a> {
    bytes: &'a [u8],
    index: ChunkIndex,
    problem: Option<JfrError>,
}

/// The events, constants and types of a chunk. Values that are read from it borrow from its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'c> {
    pub(super) bytes: &'c [u8],
    pub(super) index: &'c ChunkIndex,
}

impl<'a> OpenChunk<'a> {
    /// Opens the chunk at the beginning of `bytes`; `base` is their offset in the recording. The chunk ends
    /// where its header says. If that is impossible, because the chunk is still being written or has been
    /// truncated, it ends with its last event.
    ///
    /// # Errors
    /// If the chunk has no header or no metadata, so that none of its events can be read. Any other error is
    /// reported by [`OpenChunk::problem`], and the readable part can be read.
    pub fn open(bytes: &'a [u8], base: u64) -> Result<Self, JfrError> {
        Self::open_after(&mut KnownMetadata::default(), bytes, base)
    }

    /// Opens a chunk that follows another one. `known` is the metadata of the previous chunk, which is reused
    /// if this chunk has the same.
    ///
    /// # Errors
    /// The errors of [`OpenChunk::open`].
    pub fn open_after(known: &mut KnownMetadata, bytes: &'a [u8], base: u64) -> Result<Self, JfrError> {
        let header = ChunkHeader::parse(bytes, base)?;
        let size = usize::try_from(header.size).ok().filter(|&size| size >= HEADER_LEN);
        let size = size.filter(|&size| size <= bytes.len() && header.is_finished());
        // A truncated chunk may be followed by another recording within the size that its header declares.
        if let ChunkSearch::At(next) = next_chunk::find(bytes, &header) {
            return Self::by_events(known, &bytes[..next], None, header, base);
        }
        if let Some(size) = size
            && let Ok(chunk) = Self::by_header(known, &bytes[..size], header, base)
        {
            return Ok(chunk);
        }
        Self::by_events(known, bytes, size, header, base)
    }

    /// Opens a chunk whose metadata and checkpoints are where its header says.
    fn by_header(
        known: &mut KnownMetadata,
        bytes: &'a [u8],
        header: ChunkHeader,
        base: u64,
    ) -> Result<Self, JfrError> {
        let cursor = ChunkCursor::new(bytes, 0, base, header.compressed_integers());
        let frame = frame_at(cursor, header.metadata_offset)?;
        let (metadata, metadata_at) = (known.read(cursor, &frame)?, base + frame.at as u64);
        let mut checkpoints = Vec::new();
        let (mut at, mut bound) = (header.checkpoint_offset, bytes.len());
        loop {
            let frame = frame_at(cursor, at)?;
            let mut payload = cursor;
            payload.seek(frame.payload);
            // Each checkpoint must end before the previous one in the chain begins: so the chain ends, and no
            // byte is read twice.
            if frame.end > bound || frame.type_id != CHECKPOINT {
                let problem = Problem::WrongEvent { found: frame.type_id, expected: CHECKPOINT };
                return Err(problem.at(base + frame.at as u64));
            }
            let delta = super::pools::Checkpoint::read(&mut payload)?.delta;
            checkpoints.push(frame);
            bound = frame.at;
            if delta == 0 {
                break;
            }
            at = at.checked_add(delta).ok_or_else(|| Problem::OutOfBounds.at(base))?;
        }
        checkpoints.reverse();
        let mut pools = Pools::default();
        for frame in &checkpoints {
            pools.add(frame, cursor, &metadata)?;
        }
        Ok(Self { bytes, index: ChunkIndex { header, base, metadata, metadata_at, pools }, problem: None })
    }

    /// Opens a chunk by walking all its events, up to `size` if the size is known.
    fn by_events(
        known: &mut KnownMetadata,
        bytes: &'a [u8],
        size: Option<usize>,
        header: ChunkHeader,
        base: u64,
    ) -> Result<Self, JfrError> {
        let within = &bytes[..size.unwrap_or(bytes.len())];
        let mut cursor = ChunkCursor::new(within, HEADER_LEN, base, header.compressed_integers());
        let mut problem = None;
        let mut metadata: Option<Result<(Arc<Metadata>, u64), JfrError>> = None;
        let mut checkpoints = Vec::new();
        let mut has_events = false;
        while cursor.left() > 0 && !(size.is_none() && begins_chunk(&within[cursor.at()..])) {
            let frame = match EventPlace::read(&mut cursor) {
                Ok(frame) => frame,
                Err(_) if size.is_none() && is_cut(cursor) => {
                    problem = Some(cursor.error(Problem::TruncatedChunk));
                    break;
                }
                Err(error) => {
                    problem = Some(error);
                    break;
                }
            };
            match frame.type_id {
                METADATA => {
                    let read = known.read(cursor, &frame).map(|read| (read, base + frame.at as u64));
                    if read.is_ok() || !matches!(metadata, Some(Ok(_))) {
                        metadata = Some(read);
                    }
                }
                CHECKPOINT => checkpoints.push(frame),
                _ => has_events = true,
            }
        }
        let end = cursor.at();
        if has_events && checkpoints.is_empty() && !header.is_finished() {
            // `NoConstants` is more informative than `TruncatedChunk`, so it takes precedence.
            problem = problem.filter(|error| error.problem != Problem::TruncatedChunk);
            problem = problem.or(Some(cursor.error(Problem::NoConstants)));
        }
        if size.is_none() && header.is_finished() && problem.is_none() {
            // The chunk was cut between two events; only the header reveals that.
            problem = Some(cursor.error(Problem::TruncatedChunk));
        }
        let missing = Problem::NoMetadata.at(base + end as u64);
        let (metadata, metadata_at) = metadata.unwrap_or(Err(problem.unwrap_or(missing)))?;
        let mut pools = Pools::default();
        for frame in &checkpoints {
            if let Err(error) = pools.add(frame, cursor, &metadata) {
                problem = problem.or(Some(error));
            }
        }
        let index = ChunkIndex { header, base, metadata, metadata_at, pools };
        Ok(Self { bytes: &bytes[..end], index, problem })
    }

    /// The length in bytes of the readable part of the chunk.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the chunk has no bytes: always false, since a chunk has a header.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The first problem of the chunk. The events and constants that it does not affect can be read.
    pub fn problem(&self) -> Option<JfrError> {
        self.problem
    }

    /// The chunk's contents.
    pub fn contents(&self) -> Chunk<'_> {
        Chunk { bytes: self.bytes, index: &self.index }
    }
}

impl<'c> Chunk<'c> {
    /// The chunk's header. If the chunk is still being written, this is the header as it was read.
    pub fn header(&self) -> &'c ChunkHeader {
        &self.index.header
    }

    /// The chunk's types.
    pub fn metadata(&self) -> &'c Metadata {
        &self.index.metadata
    }

    /// The offset in the recording of the metadata event in use. A chunk that is being written may have
    /// several. Anything that a consumer has compiled for one of them is valid for that one only.
    pub fn metadata_offset(&self) -> u64 {
        self.index.metadata_at
    }

    /// The chunk's offset in the recording.
    pub fn offset(&self) -> u64 {
        self.index.base
    }

    /// The chunk's bytes.
    pub fn bytes(&self) -> &'c [u8] {
        self.bytes
    }

    #[inline]
    pub(super) fn cursor(&self, at: usize, end: usize) -> ChunkCursor<'c> {
        let header = &self.index.header;
        ChunkCursor::new(self.bytes, at, self.index.base, header.compressed_integers()).up_to(end)
    }

    /// The first byte of a constant's value; 0 if the chunk does not have this key. For [`Numbers::each`],
    /// which reads many constants that lie scattered in memory.
    ///
    /// [`Numbers::each`]: super::numbers::Numbers::each
    #[inline]
    pub(super) fn first_byte(&self, constant: Constant) -> u8 {
        let at = self.index.pools.find(constant.of, constant.key);
        at.and_then(|at| self.bytes.get(at).copied()).unwrap_or(0)
    }

    /// The position of a constant among the constants of its type. Positions count from 0 in the order in
    /// which the constants were found, so a consumer can keep its own data about constants in a vector.
    #[inline]
    pub fn constant_position(&self, constant: Constant) -> Option<usize> {
        self.index.pools.position(constant.of, constant.key)
    }

    /// Whether the chunk has a checkpoint. A writer that writes constants only at the end of a chunk
    /// (async-profiler) leaves none in an unfinished chunk, so no reference in such a chunk can be resolved.
    pub fn has_checkpoint(&self) -> bool {
        self.index.pools.has_checkpoint()
    }

    /// The number of constants of a type.
    pub fn constant_count(&self, of: TypeIndex) -> usize {
        self.index.pools.count(of)
    }
}
