//! Reads a recording as its bytes come.
//!
//! A chunk's events are delivered when a flush of its writer closes a segment (a checkpoint with FLUSH and HEADER, HotSpot
//! from JDK 14 on), and the rest of them when the chunk ends. An event is kept until then if it refers to constants that
//! are not known yet. The bytes of one chunk are kept, those of the chunks before are not.

use super::chunk::{Chunk, ChunkIndex, begins_chunk, is_cut, read_metadata};
use super::cursor::Cursor;
use super::error::{JfrError, Problem};
use super::events::{Event, Events};
use super::framing::{CHECKPOINT, Frame, METADATA};
use super::header::{ChunkHeader, HEADER_LEN};
use super::metadata::Metadata;
use super::pools::{Checkpoint, Pools};
use super::references::References;

/// The mask of a checkpoint that closes a segment: FLUSH and HEADER.
const CLOSES_SEGMENT: u8 = 1 | 2;
/// As many bytes as tell that a chunk begins.
const TELLING: usize = 7;

/// A recording of which more may come.
#[derive(Clone, Debug, Default)]
pub struct PushParser {
    /// From the current chunk's beginning on.
    bytes: Vec<u8>,
    /// The offset of `bytes` in the recording.
    base: u64,
    chunk: Option<GrowingChunk>,
    /// Nothing more can be read.
    ended: bool,
}

#[derive(Clone, Debug)]
struct GrowingChunk {
    index: ChunkIndex,
    has_metadata: bool,
    /// The chunk's length, if its header says it and can be believed.
    size: Option<usize>,
    /// Up to where events have been told apart.
    framed: usize,
    /// Up to where events have been delivered, or are in `late`.
    delivered: usize,
    /// Checkpoints that wait for metadata.
    checkpoints: Vec<Frame>,
    /// Events that refer to what is not known yet.
    late: Vec<Frame>,
    references: References,
    /// The first thing that is wrong.
    problem: Option<JfrError>,
    /// Events cannot be told apart any more.
    is_broken: bool,
}

impl PushParser {
    /// A recording that begins with the next byte.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes more bytes, and gives `deliver` each event that can be read with all that it refers to.
    ///
    /// # Errors
    /// The first thing that is wrong in the bytes. If the next chunk can be found, later calls go on there; else they do
    /// nothing.
    pub fn push(&mut self, more: &[u8], deliver: &mut dyn FnMut(&Event<'_>)) -> Result<(), JfrError> {
        if self.ended {
            return Ok(());
        }
        self.bytes.extend_from_slice(more);
        let mut first_problem = Ok(());
        while !self.ended {
            let (goes_on, result) = self.advance(false, deliver);
            first_problem = first_problem.and(result);
            if !goes_on {
                break;
            }
        }
        first_problem
    }

    /// Says that no more bytes come: what is left is delivered.
    ///
    /// # Errors
    /// If the bytes end within a chunk, or another thing is wrong.
    pub fn finish(&mut self, deliver: &mut dyn FnMut(&Event<'_>)) -> Result<(), JfrError> {
        let mut first_problem = Ok(());
        while !self.ended && !self.bytes.is_empty() {
            let (goes_on, result) = self.advance(true, deliver);
            first_problem = first_problem.and(result);
            if !goes_on {
                break;
            }
        }
        self.ended = true;
        self.bytes = Vec::new();
        first_problem
    }

    /// Reads on. Whether there may be more to read in the bytes that are there, and what is wrong.
    fn advance(&mut self, is_all: bool, deliver: &mut dyn FnMut(&Event<'_>)) -> (bool, Result<(), JfrError>) {
        if self.chunk.is_none() {
            if self.bytes.is_empty()
                || (self.bytes.len() < HEADER_LEN && !is_all && may_be_header(&self.bytes))
            {
                return (false, Ok(()));
            }
            match ChunkHeader::parse(&self.bytes, self.base) {
                Ok(header) => self.chunk = Some(GrowingChunk::new(header, self.base)),
                Err(error) => {
                    self.ended = true;
                    return (false, Err(error));
                }
            }
        }
        let Some(chunk) = &mut self.chunk else { return (false, Ok(())) };
        let end = chunk.advance(&self.bytes, is_all, deliver);
        let Some(end) = end else { return (false, Ok(())) };
        let result = chunk.problem.map_or(Ok(()), Err);
        self.chunk = None;
        self.bytes.drain(..end);
        self.base += end as u64;
        // Behind a chunk whose end is not known nothing can be found.
        self.ended = end == 0;
        (!self.ended && !self.bytes.is_empty(), result)
    }
}

impl GrowingChunk {
    fn new(header: ChunkHeader, base: u64) -> Self {
        let size =
            usize::try_from(header.size).ok().filter(|&size| size >= HEADER_LEN && header.is_finished());
        Self {
            index: ChunkIndex { header, base, metadata: Metadata::default(), pools: Pools::default() },
            has_metadata: false,
            size,
            framed: HEADER_LEN,
            delivered: HEADER_LEN,
            checkpoints: Vec::new(),
            late: Vec::new(),
            references: References::default(),
            problem: None,
            is_broken: false,
        }
    }

    /// Reads on in the chunk's bytes, and gives its length once it is known to have ended; 0 if what follows cannot be
    /// found.
    fn advance(&mut self, bytes: &[u8], is_all: bool, deliver: &mut dyn FnMut(&Event<'_>)) -> Option<usize> {
        let within = &bytes[..self.size.map_or(bytes.len(), |size| size.min(bytes.len()))];
        let is_whole = self.size == Some(within.len());
        let mut cursor =
            Cursor::new(within, self.framed, self.index.base, self.index.header.compressed_integers());
        let mut has_ended = is_whole;
        while !self.is_broken && cursor.left() > 0 {
            if self.size.is_none() {
                let rest = &within[cursor.at()..];
                if begins_chunk(rest) {
                    has_ended = true;
                    break;
                }
                if !is_all && rest.len() < TELLING && may_be_header(rest) {
                    break;
                }
            }
            if !is_whole && is_cut(cursor) {
                break;
            }
            match Frame::read(&mut cursor) {
                Ok(frame) => self.framed_event(cursor, &frame, within, deliver),
                Err(error) => {
                    self.is_broken = true;
                    self.found(error);
                }
            }
        }
        if !has_ended && !is_all {
            // Nothing behind the place is delivered; if the chunk's end is known, the next one is.
            return match self.is_broken && self.size.is_none() {
                true => Some(self.end(within, deliver, 0)),
                false => None,
            };
        }
        if !has_ended && !self.is_broken && (cursor.left() > 0 || self.size.is_some()) {
            self.found(cursor.error(Problem::TruncatedChunk));
        }
        let end = self.size.filter(|_| is_whole).unwrap_or(cursor.at());
        Some(self.end(within, deliver, if has_ended { end } else { 0 }))
    }

    /// Delivers what is left, and gives `end`.
    fn end(&mut self, bytes: &[u8], deliver: &mut dyn FnMut(&Event<'_>), end: usize) -> usize {
        if !self.has_metadata {
            self.found(Problem::NoMetadata.at(self.index.base + self.framed as u64));
        }
        self.deliver(bytes, true, deliver);
        end
    }

    fn found(&mut self, problem: JfrError) {
        self.problem = self.problem.or(Some(problem));
    }

    fn framed_event(
        &mut self,
        cursor: Cursor<'_>,
        frame: &Frame,
        bytes: &[u8],
        deliver: &mut dyn FnMut(&Event<'_>),
    ) {
        self.framed = frame.end;
        let closes = match frame.type_id {
            METADATA => {
                match read_metadata(cursor, frame) {
                    Ok(metadata) => {
                        self.index.pools.renumber(&self.index.metadata, &metadata);
                        self.index.metadata = metadata;
                        self.references = References::default();
                        self.has_metadata = true;
                    }
                    Err(error) => self.found(error),
                }
                false
            }
            CHECKPOINT => {
                self.checkpoints.push(*frame);
                let mut payload = cursor;
                payload.seek(frame.payload);
                let mask = Checkpoint::read(&mut payload).map_or(0, |checkpoint| checkpoint.mask);
                mask & CLOSES_SEGMENT == CLOSES_SEGMENT
            }
            _ => false,
        };
        if closes && self.has_metadata {
            self.deliver(bytes, false, deliver);
        }
    }

    /// Delivers the events up to where they are framed; at the chunk's end those too that refer to what is not known.
    fn deliver(&mut self, bytes: &[u8], is_end: bool, deliver: &mut dyn FnMut(&Event<'_>)) {
        if !self.has_metadata {
            return;
        }
        let cursor = Cursor::new(bytes, 0, self.index.base, self.index.header.compressed_integers());
        for frame in std::mem::take(&mut self.checkpoints) {
            if let Err(error) = self.index.pools.add(&frame, cursor, &self.index.metadata) {
                self.found(error);
            }
        }
        let chunk = Chunk { bytes: &bytes[..self.framed], index: &self.index };
        let references = &mut self.references;
        let mut give = |event: &Event<'_>| {
            let is_ready = is_end || references.are_known(event);
            if is_ready {
                deliver(event);
            }
            is_ready
        };
        self.late.retain(|frame| !Event::of_frame(chunk, frame).is_some_and(|event| give(&event)));
        for event in Events::new(chunk, self.delivered, self.framed).map_while(Result::ok) {
            if !give(&event) {
                self.late.push(event.frame());
            }
        }
        self.delivered = self.framed;
    }
}

/// Whether these bytes may be the first of a chunk's.
fn may_be_header(bytes: &[u8]) -> bool {
    let magic = b"FLR\0";
    let known = bytes.len().min(magic.len());
    bytes[..known] == magic[..known]
}
