//! Constants: values that events name by a key, found in the chunk's checkpoints. Only their places are kept; a value is
//! read when it is asked for.

use super::cursor::Cursor;
use super::error::{JfrError, Problem};
use super::framing::{CHECKPOINT, Frame};
use super::key_index::KeyIndex;
use super::layout::Layout;
use super::metadata::Metadata;
use super::types::TypeIndex;
use super::values::Constant;

/// The constants of one type.
#[derive(Clone, Debug, Default)]
struct Pool {
    keys: KeyIndex,
    /// Where the value of each key begins in the chunk.
    offsets: Vec<usize>,
    /// How many bytes they have, keys and values.
    len: usize,
}

/// The constants of a chunk.
///
/// A key may be written again. The first value counts, as with the JDK's own reader (JDK 17
/// `ChunkParser.fillConstantPools`, which reads the checkpoints from the last to the first and replaces).
#[derive(Clone, Debug, Default)]
pub(super) struct Pools {
    /// By the type's position.
    by_type: Vec<Pool>,
    /// Whether there has been a checkpoint.
    has_checkpoint: bool,
    /// Those that have come since somebody took them, if somebody does.
    news: Option<Vec<Constant>>,
}

/// What a checkpoint says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checkpoint {
    /// From here to the checkpoint before; 0 for the first.
    pub(super) delta: i64,
    /// 1 written by a flush, 2 with the header, 4 statics, 8 threads.
    pub(super) mask: u8,
    /// How many pools follow.
    pub(super) pools: usize,
}

impl Checkpoint {
    /// Reads a checkpoint's fields; the cursor is behind the event's type id.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, JfrError> {
        let _ticks = cursor.long()?;
        let _duration_ticks = cursor.long()?;
        let delta = cursor.long()?;
        let mask = cursor.byte()?;
        Ok(Self { delta, mask, pools: cursor.count()? })
    }
}

impl Pools {
    /// Where the value begins that this type has under this key.
    #[inline]
    pub(super) fn find(&self, of: TypeIndex, key: i64) -> Option<usize> {
        let pool = self.by_type.get(of.0 as usize)?;
        pool.keys.find(key).map(|position| pool.offsets[position])
    }

    /// The position of a key among those of its type.
    #[inline]
    pub(super) fn position(&self, of: TypeIndex, key: i64) -> Option<usize> {
        self.by_type.get(of.0 as usize)?.keys.find(key)
    }

    /// How many constants of a type there are.
    pub(super) fn count(&self, of: TypeIndex) -> usize {
        self.by_type.get(of.0 as usize).map_or(0, |pool| pool.keys.len())
    }

    /// Whether any checkpoint has been added, even one without constants.
    pub(super) fn has_checkpoint(&self) -> bool {
        self.has_checkpoint
    }

    /// Adds what one checkpoint holds, as far as it can be read.
    pub(super) fn add(
        &mut self,
        frame: &Frame,
        bytes: Cursor<'_>,
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

    /// The constants that have come since the last call, of which the first has none.
    pub(super) fn take_news(&mut self) -> Vec<Constant> {
        self.news.replace(Vec::new()).unwrap_or_default()
    }

    /// Puts the pools where the types are in other metadata of the same chunk.
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
        cursor: &mut Cursor<'_>,
        of: TypeIndex,
        metadata: &Metadata,
        news: &mut Option<Vec<Constant>>,
    ) -> Result<(), JfrError> {
        let layout = &metadata.get(of).layout;
        let may_be_bare = metadata.bare_stacks() == Some(of);
        let count = cursor.count()?;
        for number in 1..=count {
            let begin = cursor.at();
            let key = cursor.long()?;
            let at = cursor.at();
            if may_be_bare && is_bare_stack(*cursor, layout, metadata, number == count) {
                // An event with it is one without a stack.
                cursor.byte()?;
                continue;
            }
            // Only a value that can be passed is one.
            layout.skip(cursor, metadata)?;
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

/// Whether the stack at the cursor is one of no frames without its first field, `truncated`: the count alone.
///
/// DataDog/java-profiler flightRecorder.cpp, `writeStackTraces`, has no such field for them. A stack that is whole begins with
/// the same byte, and its count follows; here it is the next stack's key, of more than 32 bits, or the next pool's type.
fn is_bare_stack(cursor: Cursor<'_>, layout: &Layout, metadata: &Metadata, is_last: bool) -> bool {
    let mut behind_zero = cursor;
    if behind_zero.byte() != Ok(0) {
        return false;
    }
    let left = behind_zero.left();
    let is_count = |next: i64| usize::try_from(next).is_ok_and(|count| count <= left);
    if !behind_zero.long().is_ok_and(is_count) {
        return true;
    }
    let mut behind_whole = cursor;
    is_last
        && (layout.skip(&mut behind_whole, metadata).is_err()
            || behind_whole.left() > 0
                && !behind_whole.long().is_ok_and(|type_id| metadata.find(type_id).is_some()))
}
