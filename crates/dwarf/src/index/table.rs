//! Tables: blocks of groups of entries.

use std::io::{self, Write};
use std::ops::Range;

use otlpprof_elf::source::Source;

use super::codec::Numbers;
use super::directory::{Block, IndexError, checksum};

/// The bytes of entries at which a block is full.
const BLOCK_LEN: usize = 32 << 10;
/// The bytes for each group at a block's begin: the distance of its key from the block's, and the offset of
/// its entries.
const GROUP_LEN: usize = 8;
/// The most bytes of blocks that a reader keeps.
const CACHE_LEN: usize = 64 << 20;
/// The bytes of a slab, in which a reader keeps several blocks. The C library maps an allocation of this
/// size by itself. Smaller ones of a thread that is not the first would grow that thread's heap by single
/// pages, with a system call for each.
const SLAB_LEN: usize = 8 * BLOCK_LEN;

/// Counts the bytes that are written.
pub(super) struct Output<W> {
    pub(super) to: W,
    pub(super) len: u64,
}

impl<W: Write> Output<W> {
    pub(super) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.len += bytes.len() as u64;
        self.to.write_all(bytes)
    }
}

/// Writes a table.
#[derive(Default)]
pub(super) struct TableWriter {
    first_key: u64,
    groups: Vec<(u32, u32)>,
    entries: Vec<u8>,
    blocks: Vec<Block>,
}

impl TableWriter {
    /// Begins a group with this key, which is greater than all before. Returns the place of its entries.
    pub(super) fn group(&mut self, key: u64, out: &mut Output<impl Write>) -> io::Result<&mut Vec<u8>> {
        let distance = u32::try_from(key - self.first_key);
        if self.entries.len() >= BLOCK_LEN || distance.is_err() {
            self.end_block(out)?;
        }
        if self.groups.is_empty() {
            self.first_key = key;
        }
        // SANITY: a new block begins if the distance does not fit, and then it is 0.
        let distance = u32::try_from(key - self.first_key).unwrap_or_default();
        self.groups.push((distance, self.entries.len() as u32));
        Ok(&mut self.entries)
    }

    /// The place of entries of the last group.
    pub(super) fn entries(&mut self) -> &mut Vec<u8> {
        &mut self.entries
    }

    fn end_block(&mut self, out: &mut Output<impl Write>) -> io::Result<()> {
        if self.groups.is_empty() {
            return Ok(());
        }
        let mut block = Vec::with_capacity(4 + GROUP_LEN * self.groups.len() + self.entries.len());
        block.extend((self.groups.len() as u32).to_le_bytes());
        for (distance, offset) in self.groups.drain(..) {
            block.extend(distance.to_le_bytes());
            block.extend(offset.to_le_bytes());
        }
        block.append(&mut self.entries);
        let (offset, len) = (out.len, block.len() as u32);
        self.blocks.push(Block { first_key: self.first_key, offset, len, checksum: checksum(&block) });
        out.put(&block)
    }

    /// Ends the table, and returns the places of its blocks.
    pub(super) fn finish(mut self, out: &mut Output<impl Write>) -> io::Result<Vec<Block>> {
        self.end_block(out)?;
        Ok(self.blocks)
    }
}

/// The blocks that have been read and checked.
///
/// A reader that is asked in ascending order reads each block once. So a block is kept only when it is read a
/// second time: to fill new memory takes longer than to fill the same memory again.
#[derive(Debug, Default)]
struct BlockCache {
    slabs: Vec<Vec<u8>>,
    /// The bytes of the last slab that are in use.
    used: usize,
    /// By the block's number.
    places: Vec<BlockPlace>,
    len: usize,
    /// The last block that was read for the first time, and its number.
    last: Vec<u8>,
    last_number: Option<usize>,
}

/// The place of a block in a reader's memory.
#[derive(Clone, Debug, Default)]
enum BlockPlace {
    #[default]
    NotRead,
    /// Read, and perhaps still the last one.
    ReadOnce,
    Kept {
        slab: usize,
        place: Range<usize>,
    },
}

impl BlockCache {
    /// Room for a block of this many bytes that is kept.
    fn room(&mut self, len: usize) -> (usize, Range<usize>) {
        if self.len + len > CACHE_LEN {
            self.places.fill(BlockPlace::NotRead);
            (self.slabs, self.used, self.len) = (Vec::new(), 0, 0);
        }
        if self.slabs.last().is_none_or(|slab| slab.len() - self.used < len) {
            self.slabs.push(vec![0; SLAB_LEN.max(len)]);
            self.used = 0;
        }
        let place = self.used..self.used + len;
        self.used = place.end;
        self.len += len;
        (self.slabs.len() - 1, place)
    }
}

/// Reads a table.
#[derive(Debug)]
pub(super) struct TableReader {
    name: &'static str,
    blocks: Vec<Block>,
    cache: BlockCache,
}

/// A group of entries.
pub(super) struct Group<'b> {
    /// The key of the first entry.
    pub(super) key: u64,
    entries: &'b [u8],
}

impl<'b> Group<'b> {
    pub(super) fn numbers(&self) -> Numbers<'b> {
        Numbers(self.entries)
    }
}

impl TableReader {
    pub(super) fn new(name: &'static str, blocks: Vec<Block>) -> Self {
        let cache = BlockCache { places: vec![BlockPlace::NotRead; blocks.len()], ..BlockCache::default() };
        Self { name, blocks, cache }
    }

    /// Another reader of the table, which has read no block yet.
    pub(super) fn another(&self) -> Self {
        Self::new(self.name, self.blocks.clone())
    }

    /// The error of malformed entries.
    pub(super) fn damaged(&self) -> IndexError {
        IndexError::Damaged(self.name)
    }

    /// The group that has the greatest key at or below this one; none if the first key is above.
    pub(super) fn group(&mut self, source: &dyn Source, key: u64) -> Result<Option<Group<'_>>, IndexError> {
        let after = self.blocks.partition_point(|block| block.first_key <= key);
        let Some(number) = after.checked_sub(1) else { return Ok(None) };
        let (name, first_key) = (self.name, self.blocks[number].first_key);
        let group = group_in(self.block(source, number)?, first_key, key);
        group.map(Some).ok_or(IndexError::Damaged(name))
    }

    /// A block, from the file or the cache.
    fn block(&mut self, source: &dyn Source, number: usize) -> Result<&[u8], IndexError> {
        let block = self.blocks[number];
        let read = |bytes: &mut [u8]| {
            source.read_into(block.offset, bytes)?;
            let is_whole = checksum(bytes) == block.checksum;
            is_whole.then_some(()).ok_or(IndexError::Damaged(self.name))
        };
        let cache = &mut self.cache;
        if cache.last_number != Some(number) {
            match cache.places[number] {
                BlockPlace::Kept { .. } => {}
                BlockPlace::NotRead => {
                    cache.last_number = None;
                    cache.last.resize(block.len as usize, 0);
                    read(&mut cache.last)?;
                    cache.last_number = Some(number);
                    cache.places[number] = BlockPlace::ReadOnce;
                }
                BlockPlace::ReadOnce => {
                    let (slab, place) = cache.room(block.len as usize);
                    read(&mut cache.slabs[slab][place.clone()])?;
                    cache.places[number] = BlockPlace::Kept { slab, place };
                }
            }
        }
        Ok(match &cache.places[number] {
            BlockPlace::Kept { slab, place } => &cache.slabs[*slab][place.clone()],
            BlockPlace::NotRead | BlockPlace::ReadOnce => &cache.last,
        })
    }
}

/// The group of a block that has the greatest key at or below this one; `None` if the block is malformed.
fn group_in(block: &[u8], first_key: u64, key: u64) -> Option<Group<'_>> {
    let short = |at: usize| Some(u32::from_le_bytes(*block.get(at..)?.first_chunk()?) as usize);
    let count = short(0)?;
    let entries = count.checked_mul(GROUP_LEN)?.checked_add(4).filter(|&entries| entries <= block.len())?;
    let distance = usize::try_from(key - first_key).ok()?;
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if short(4 + GROUP_LEN * middle)? <= distance { low = middle + 1 } else { high = middle }
    }
    let at = 4 + GROUP_LEN * low.checked_sub(1)?;
    let start = short(at + 4)?.saturating_add(entries);
    let end = if low == count { block.len() } else { short(at + GROUP_LEN + 4)?.saturating_add(entries) };
    Some(Group { key: first_key.saturating_add(short(at)? as u64), entries: block.get(start..end)? })
}
