//! The constants of a chunk, to which events refer by key. They are found in the chunk's checkpoints. Only
//! their places are kept; a value is read when a caller asks for it.

use super::cursor::ChunkCursor;
use super::error::{JfrError, Problem};
use super::framing::{CHECKPOINT, EventPlace};
use super::key_index::KeyIndex;
use super::layout::Layout;
use super::metadata::Metadata;
use super::types::{Constant, TypeIndex};

/// The constants of one type.
#[derive(Clone, Debug, Default)]
struct Pool {
    keys: KeyIndex,
    /// The offset in the chunk of each key's value.
    offsets: Vec<usize>,
    /// The number of bytes of all keys and values.
    len: usize,
}

/// The constants of a chunk.
///
/// A key may occur again. Its first value counts, as in the JDK's own reader (JDK 17
/// `ChunkParser.fillConstantPools`, which reads the checkpoints from the last to the first and replaces
/// values).
#[derive(Clone, Debug, Default)]
pub(super) struct Pools {
    /// The pools, by the position of their type.
    by_type: Vec<Pool>,
    /// Whether there has been a checkpoint.
    has_checkpoint: bool,
    /// The constants added since the last call of [`Pools::take_news`]; `None` if it has never been called.
    news: Option<Vec<Constant>>,
}

/// The head of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checkpoint {
    /// The distance to the previous checkpoint; 0 for the first one.
    pub(super) delta: i64,
    /// Bits: 1 written by a flush, 2 with the header, 4 statics, 8 threads.
    pub(super) mask: u8,
    /// The number of pools that follow.
    pub(super) pools: usize,
}

impl Checkpoint {
    /// Reads the head of a checkpoint. The cursor is after the event's type id.
    pub(super) fn read(cursor: &mut ChunkCursor<'_>) -> Result<Self, JfrError> {
        let _ticks = cursor.long()?;
        let _duration_ticks = cursor.long()?;
        let delta = cursor.long()?;
        let mask = cursor.byte()?;
        Ok(Self { delta, mask, pools: cursor.count()? })
    }
}

impl Pools {
    /// The offset of the value with this type and key.
    #[inline]
    pub(super) fn find(&self, of: TypeIndex, key: i64) -> Option<usize> {
        let pool = self.by_type.get(of.0 as usize)?;
        pool.keys.find(key).map(|position| pool.offsets[position])
    }

    /// The position of a key among the keys of its type.
    #[inline]
    pub(super) fn position(&self, of: TypeIndex, key: i64) -> Option<usize> {
        self.by_type.get(of.0 as usize)?.keys.find(key)
    }

    /// The number of constants of a type.
    pub(super) fn count(&self, of: TypeIndex) -> usize {
        self.by_type.get(of.0 as usize).map_or(0, |pool| pool.keys.len())
    }

    /// Whether any checkpoint has been added, even one without constants.
    pub(super) fn has_checkpoint(&self) -> bool {
        self.has_checkpoint
    }

    /// Adds the constants of one checkpoint, as far as they can be read.
    pub(super) fn add(
        &mut self,
        frame: &EventPlace,
        bytes: ChunkCursor<'_>,
        metadata: &Metadata,
    ) -> Result<Checkpoint, JfrError> {
        self.has_checkpoint = true;
        let mut cursor = bytes.up_to(frame.end);
        cursor.seek(frame.payload);
        if frame.type_id != CHECKPOINT {
            cursor.seek(frame.at);
            return Err(cursor.error(Problem::WrongEvent { found: frame.type_id, expected: CHECKPOINT }));
        }
        let checkpoint = Checkpoint::read(&mut cursor)?;
        if self.by_type.len() < metadata.all().len() {
            self.by_type.resize_with(metadata.all().len(), Pool::default);
        }
        for _ in 0..checkpoint.pools {
            let at = cursor;
            let id = cursor.long()?;
            let of = metadata.find(id).ok_or_else(|| at.error(Problem::UnknownType(id)))?;
            self.by_type[of.0 as usize].add(&mut cursor, of, metadata, &mut self.news)?;
        }
        Ok(checkpoint)
    }

    /// The constants added since the last call; empty for the first call.
    pub(super) fn take_news(&mut self) -> Vec<Constant> {
        self.news.replace(Vec::new()).unwrap_or_default()
    }

    /// Reorders the pools for new metadata of the same chunk, in which types have other positions.
    pub(super) fn renumber(&mut self, before: &Metadata, now: &Metadata) {
        let mut by_type = Vec::new();
        by_type.resize_with(now.all().len(), Pool::default);
        for (pool, of) in self.by_type.drain(..).zip(before.all()) {
            if let Some(index) = now.find(of.id) {
                by_type[index.0 as usize] = pool;
            }
        }
        self.by_type = by_type;
    }
}

impl Pool {
    fn add(
        &mut self,
        cursor: &mut ChunkCursor<'_>,
        of: TypeIndex,
        metadata: &Metadata,
        news: &mut Option<Vec<Constant>>,
    ) -> Result<(), JfrError> {
        let layout = metadata.layouts().of(of);
        let may_be_bare = metadata.bare_stacks() == Some(of);
        let count = cursor.count()?;
        for number in 1..=count {
            let begin = cursor.at();
            let key = cursor.long()?;
            let at = cursor.at();
            if may_be_bare && is_bare_stack(*cursor, layout, metadata, number == count) {
                // Events with this key have no stack, so the key is not added.
                cursor.byte()?;
                continue;
            }
            // A value is added only if it can be skipped, and so can be read.
            layout.skip(cursor, metadata.layouts())?;
            self.len += cursor.at() - begin;
            if self.keys.add(key, self.len / size_of::<u32>()).is_some() {
                self.offsets.push(at);
                if let Some(news) = news {
                    news.push(Constant { of, key });
                }
            }
        }
        Ok(())
    }
}

/// Whether the stack at the cursor has no frames and lacks its first field, `truncated`, so that it is a
/// count alone.
///
/// DataDog/java-profiler (flightRecorder.cpp, `writeStackTraces`) omits the field for such stacks. A complete
/// stack begins with the same byte, 0, which is followed by the count. After a bare stack follows the key of
/// the next stack, which has more than 32 bits, or the type of the next pool.
fn is_bare_stack(cursor: ChunkCursor<'_>, layout: &Layout, metadata: &Metadata, is_last: bool) -> bool {
    let mut after_zero = cursor;
    if after_zero.byte() != Ok(0) {
        return false;
    }
    let left = after_zero.left();
    let is_count = |next: i64| usize::try_from(next).is_ok_and(|count| count <= left);
    if !after_zero.long().is_ok_and(is_count) {
        return true;
    }
    let mut after_whole = cursor;
    is_last
        && (layout.skip(&mut after_whole, metadata.layouts()).is_err()
            || after_whole.left() > 0
                && !after_whole.long().is_ok_and(|type_id| metadata.find(type_id).is_some()))
}
