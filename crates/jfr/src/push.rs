//! Reads a recording while its bytes arrive.
//!
//! A chunk's events are delivered whenever its writer has flushed, and the remaining ones when the chunk
//! ends. A flush ends with a checkpoint that has the bit FLUSH. HotSpot flushes from JDK 14 on. GraalVM's
//! native images flush too; they write the first metadata after the first flush. An event is kept until its
//! type and all constants that it refers to are known, at most until the chunk ends. Only the bytes of the
//! current chunk are kept.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::chunk::{Chunk, ChunkIndex};
use super::cursor::ChunkCursor;
use super::error::{JfrError, Problem};
use super::events::Event;
use super::framing::{CHECKPOINT, EventPlace, METADATA, is_cut};
use super::header::{ChunkHeader, HEADER_LEN, begins_chunk};
use super::known_metadata::KnownMetadata;
use super::pools::{Checkpoint, Pools};
use super::references::{MissingConstant, References};
use super::types::Constant;

/// The bit in a checkpoint's mask that says that a flush wrote it.
const FLUSH: u8 = 1;
/// The most checks of one event. After them the event waits for the chunk's end. Without this limit an event
/// could be checked once for each constant that it refers to. HotSpot writes the constants of one event
/// together.
const MAX_CHECKS: u8 = 16;
/// The most metadata events of a chunk that allow early delivery. After more, the chunk's other events wait
/// for its end, since each metadata event requires that all constants are checked again.
const MAX_METADATA_EVENTS: u32 = 64;
/// The number of bytes that suffice to detect the beginning of a chunk.
const CHUNK_MAGIC_LEN: usize = 7;

/// A recording that may continue.
#[derive(Clone, Debug, Default)]
pub struct PushParser {
    /// The bytes from the beginning of the current chunk on.
    bytes: Vec<u8>,
    /// The offset of `bytes` in the recording.
    base: u64,
    chunk: Option<GrowingChunk>,
    known: KnownMetadata,
    /// The number of bytes to skip next: the rest of a chunk in which no further event can be found.
    to_pass: usize,
    /// Whether nothing more can be read.
    ended: bool,
}

#[derive(Clone, Debug)]
struct GrowingChunk {
    index: ChunkIndex,
    has_metadata: bool,
    has_checkpoint: bool,
    has_events: bool,
    /// The chunk's length in bytes, if its header gives a credible one.
    size: Option<usize>,
    /// The offset up to which the boundaries of events are known.
    framed: usize,
    /// The offset up to which events have been delivered or postponed.
    delivered: usize,
    /// Checkpoints that wait for metadata.
    checkpoints: Vec<EventPlace>,
    /// Postponed events, by a constant that they refer to and that is not known yet.
    waiting: HashMap<Constant, Vec<WaitingEvent>, RandomState>,
    /// Postponed events whose type the metadata does not describe yet.
    untyped: Vec<WaitingEvent>,
    /// Postponed events to be checked again at the next flush.
    again: Vec<WaitingEvent>,
    /// Postponed events that wait for the chunk's end.
    last: Vec<WaitingEvent>,
    /// The number of metadata events so far.
    metadata_events: u32,
    /// Whether flushed events wait for metadata.
    is_flushed: bool,
    references: References,
    /// The first problem of the chunk.
    problem: Option<JfrError>,
    /// Whether the boundaries of further events cannot be found.
    is_broken: bool,
}

/// An event that could not be delivered, and the number of checks so far.
#[derive(Clone, Copy, Debug)]
struct WaitingEvent {
    frame: EventPlace,
    times: u8,
}

impl PushParser {
    /// A parser at the beginning of a recording.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes more bytes, and calls `deliver` with each event that can be read together with everything that
    /// it refers to.
    ///
    /// # Errors
    /// The first problem in the bytes. If the next chunk can be found, later calls continue there; otherwise
    /// they do nothing.
    pub fn push(&mut self, more: &[u8], deliver: &mut dyn FnMut(&Event<'_>)) -> Result<(), JfrError> {
        if self.ended {
            return Ok(());
        }
        let passed = self.to_pass.min(more.len());
        self.to_pass -= passed;
        self.bytes.extend_from_slice(&more[passed..]);
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

    /// Ends the recording: the remaining events are delivered.
    ///
    /// # Errors
    /// If the bytes end within a chunk, or have another problem.
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

    /// The number of values of the current chunk that have been checked to decide whether events can be
    /// delivered.
    pub fn values_checked(&self) -> u64 {
        self.chunk.as_ref().map_or(0, |chunk| chunk.references.values_checked())
    }

    /// Reads on. Returns whether the present bytes may contain more to read, and the problem of a chunk that
    /// has ended.
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
        let end = chunk.advance(&mut self.known, &self.bytes, is_all, deliver);
        let Some(end) = end else { return (false, Ok(())) };
        let result = chunk.problem.map_or(Ok(()), Err);
        self.chunk = None;
        self.to_pass = end.saturating_sub(self.bytes.len());
        self.bytes.drain(..end.min(self.bytes.len()));
        self.base = self.base.saturating_add(end as u64);
        // After a chunk whose end is unknown, nothing can be found.
        self.ended = end == 0;
        (!self.ended && !self.bytes.is_empty(), result)
    }
}

impl GrowingChunk {
    fn new(header: ChunkHeader, base: u64) -> Self {
        let size =
            usize::try_from(header.size).ok().filter(|&size| size >= HEADER_LEN && header.is_finished());
        Self {
            index: ChunkIndex {
                header,
                base,
                metadata: Arc::default(),
                metadata_at: base,
                pools: Pools::default(),
            },
            has_metadata: false,
            has_checkpoint: false,
            has_events: false,
            size,
            framed: HEADER_LEN,
            delivered: HEADER_LEN,
            checkpoints: Vec::new(),
            waiting: HashMap::default(),
            untyped: Vec::new(),
            again: Vec::new(),
            last: Vec::new(),
            metadata_events: 0,
            is_flushed: false,
            references: References::default(),
            problem: None,
            is_broken: false,
        }
    }

    /// Reads on in the chunk's bytes. Returns the chunk's length once the chunk has ended, or 0 if the bytes
    /// after it cannot be found.
    fn advance(
        &mut self,
        known: &mut KnownMetadata,
        bytes: &[u8],
        is_all: bool,
        deliver: &mut dyn FnMut(&Event<'_>),
    ) -> Option<usize> {
        let within = &bytes[..self.size.map_or(bytes.len(), |size| size.min(bytes.len()))];
        let is_whole = self.size == Some(within.len());
        let mut cursor =
            ChunkCursor::new(within, self.framed, self.index.base, self.index.header.compressed_integers());
        let mut has_ended = is_whole;
        while !self.is_broken && cursor.left() > 0 {
            if self.size.is_none() {
                let rest = &within[cursor.at()..];
                if begins_chunk(rest) {
                    has_ended = true;
                    break;
                }
                if !is_all && rest.len() < CHUNK_MAGIC_LEN && may_be_header(rest) {
                    break;
                }
            }
            if !is_whole && is_cut(cursor) {
                break;
            }
            match EventPlace::read(&mut cursor) {
                Ok(frame) => self.framed_event(known, cursor, &frame, within, deliver),
                Err(error) => {
                    self.is_broken = true;
                    self.found(error);
                }
            }
        }
        if !has_ended && !is_all {
            // No event after the corrupt place is delivered. If the chunk's end is known, the next chunk is
            // read.
            return self.is_broken.then(|| self.end(within, deliver, self.size.unwrap_or(0)));
        }
        if !has_ended && !self.is_broken && (cursor.left() > 0 || self.size.is_some()) {
            self.found(cursor.error(Problem::TruncatedChunk));
        }
        let end = self.size.filter(|_| is_whole).unwrap_or(cursor.at());
        Some(self.end(within, deliver, if has_ended { end } else { 0 }))
    }

    /// Delivers the remaining events, and returns `end`.
    fn end(&mut self, bytes: &[u8], deliver: &mut dyn FnMut(&Event<'_>), end: usize) -> usize {
        if !self.has_metadata {
            self.found(Problem::NoMetadata.at(self.index.base + self.framed as u64));
        }
        if self.has_events && !self.has_checkpoint && !self.index.header.is_finished() {
            // `NoConstants` is more informative than `TruncatedChunk`, so it takes precedence.
            self.problem = self.problem.filter(|error| error.problem != Problem::TruncatedChunk);
            self.found(Problem::NoConstants.at(self.index.base + self.framed as u64));
        }
        self.deliver(bytes, true, deliver);
        end
    }

    fn found(&mut self, problem: JfrError) {
        self.problem = self.problem.or(Some(problem));
    }

    fn framed_event(
        &mut self,
        known: &mut KnownMetadata,
        cursor: ChunkCursor<'_>,
        frame: &EventPlace,
        bytes: &[u8],
        deliver: &mut dyn FnMut(&Event<'_>),
    ) {
        self.framed = frame.end;
        match frame.type_id {
            METADATA => match known.read(cursor, frame) {
                Ok(metadata) => {
                    self.index.pools.renumber(&self.index.metadata, &metadata);
                    self.index.metadata = metadata;
                    self.index.metadata_at = self.index.base + frame.at as u64;
                    self.references.forget();
                    self.has_metadata = true;
                    self.metadata_events = self.metadata_events.saturating_add(1);
                    self.again.append(&mut self.untyped);
                    self.again.extend(std::mem::take(&mut self.waiting).into_values().flatten());
                }
                Err(error) => self.found(error),
            },
            CHECKPOINT => {
                self.checkpoints.push(*frame);
                self.has_checkpoint = true;
                let mut payload = cursor;
                payload.seek(frame.payload);
                let mask = Checkpoint::read(&mut payload).map_or(0, |checkpoint| checkpoint.mask);
                self.is_flushed |= mask & FLUSH != 0;
            }
            _ => self.has_events = true,
        }
        if self.is_flushed && self.has_metadata && self.metadata_events <= MAX_METADATA_EVENTS {
            self.is_flushed = false;
            self.deliver(bytes, false, deliver);
        }
    }

    /// Delivers the events up to `framed`. At the chunk's end, events with unknown constants are delivered
    /// too.
    fn deliver(&mut self, bytes: &[u8], is_end: bool, deliver: &mut dyn FnMut(&Event<'_>)) {
        if !self.has_metadata {
            return;
        }
        let cursor = ChunkCursor::new(bytes, 0, self.index.base, self.index.header.compressed_integers());
        for frame in std::mem::take(&mut self.checkpoints) {
            if let Err(error) = self.index.pools.add(&frame, cursor, &self.index.metadata) {
                self.found(error);
            }
        }
        let news = self.index.pools.take_news();
        let chunk = Chunk { bytes: &bytes[..self.framed], index: &self.index };
        let mut late = std::mem::take(&mut self.again);
        for constant in news {
            late.extend(self.waiting.remove(&constant).into_iter().flatten());
        }
        if is_end {
            late.append(&mut self.last);
            late.extend(std::mem::take(&mut self.waiting).into_values().flatten());
        }
        late.sort_unstable_by_key(|late| late.frame.at);
        let (references, waiting) = (&mut self.references, &mut self.waiting);
        let (untyped, last) = (&mut self.untyped, &mut self.last);
        let mut give = |late: WaitingEvent| {
            let late_again = WaitingEvent { times: late.times.saturating_add(1), ..late };
            let Some(event) = Event::of_frame(chunk, &late.frame) else {
                return if late.times < MAX_CHECKS { &mut *untyped } else { &mut *last }.push(late_again);
            };
            let lack = if is_end { None } else { references.missing_constant(&event) };
            match lack {
                None => deliver(&event),
                Some(MissingConstant::Of(constant)) if late.times < MAX_CHECKS => {
                    waiting.entry(constant).or_default().push(late_again);
                }
                Some(_) => last.push(late_again),
            }
        };
        late.into_iter().for_each(&mut give);
        let mut cursor = chunk.cursor(self.delivered, self.framed);
        while cursor.left() > 0
            && let Ok(frame) = EventPlace::read(&mut cursor)
        {
            if !matches!(frame.type_id, METADATA | CHECKPOINT) {
                give(WaitingEvent { frame, times: 0 });
            }
        }
        self.delivered = self.framed;
    }
}

/// Whether these bytes may be the beginning of a chunk.
fn may_be_header(bytes: &[u8]) -> bool {
    let magic = b"FLR\0";
    let known = bytes.len().min(magic.len());
    bytes[..known] == magic[..known]
}
