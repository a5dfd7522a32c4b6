//! Tables: blocks of groups of entries.

use std::io::{self, Write};
use std::sync::Arc;

use super::codec::Numbers;
use super::directory::{Block, IndexError, checksum};
use crate::elf::source::Source;

/// The bytes of entries at which a block is full.
const BLOCK_LEN: usize = 32 << 10;
/// The bytes for each group at a block's begin: the distance of its key from the block's, and the offset of
/// its entries.
const GROUP_LEN: usize = 8;
/// The most bytes of blocks that a reader keeps.
const CACHE_LEN: usize = 64 << 20;

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

/// Reads a table.
#[derive(Debug)]
pub(super) struct TableReader {
    name: &'static str,
    blocks: Vec<Block>,
    /// The blocks that have been read and checked.
    cache: Vec<Option<Arc<Vec<u8>>>>,
    cached_len: usize,
}

/// A group of entries.
pub(super) struct Group {
    /// The key of the first entry.
    pub(super) key: u64,
    block: Arc<Vec<u8>>,
    entries: std::ops::Range<usize>,
}

impl Group {
    pub(super) fn numbers(&self) -> Numbers<'_> {
        Numbers(&self.block[self.entries.clone()])
    }
}

impl TableReader {
    pub(super) fn new(name: &'static str, blocks: Vec<Block>) -> Self {
        let cache = vec![None; blocks.len()];
        Self { name, blocks, cache, cached_len: 0 }
    }

    /// The error of malformed entries.
    pub(super) fn damaged(&self) -> IndexError {
        IndexError::Damaged(self.name)
    }

    /// The group that has the greatest key at or below this one; none if the first key is above.
    pub(super) fn group(&mut self, source: &dyn Source, key: u64) -> Result<Option<Group>, IndexError> {
        let after = self.blocks.partition_point(|block| block.first_key <= key);
        let Some(number) = after.checked_sub(1) else { return Ok(None) };
        let block = self.block(source, number)?;
        let first_key = self.blocks[number].first_key;
        let short = |at: usize| {
            let bytes = block.get(at..).and_then(|bytes| bytes.first_chunk());
            bytes.map(|bytes| u32::from_le_bytes(*bytes) as usize).ok_or_else(|| self.damaged())
        };
        let count = short(0)?;
        let entries = count.checked_mul(GROUP_LEN).and_then(|len| len.checked_add(4));
        let entries = entries.filter(|&entries| entries <= block.len()).ok_or_else(|| self.damaged())?;
        let distance = usize::try_from(key - first_key).map_err(|_| self.damaged())?;
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            if short(4 + GROUP_LEN * middle)? <= distance { low = middle + 1 } else { high = middle }
        }
        let Some(group) = low.checked_sub(1) else { return Err(self.damaged()) };
        let at = 4 + GROUP_LEN * group;
        let start = short(at + 4)?.saturating_add(entries);
        let end = if low == count { block.len() } else { short(at + GROUP_LEN + 4)?.saturating_add(entries) };
        if start > end || end > block.len() {
            return Err(self.damaged());
        }
        let key = first_key.saturating_add(short(at)? as u64);
        Ok(Some(Group { key, entries: start..end, block: Arc::clone(&block) }))
    }

    /// A block, from the file or the cache.
    fn block(&mut self, source: &dyn Source, number: usize) -> Result<Arc<Vec<u8>>, IndexError> {
        if let Some(block) = &self.cache[number] {
            return Ok(Arc::clone(block));
        }
        let place = self.blocks[number];
        let bytes = source.read(place.offset, place.len.into())?;
        if checksum(&bytes) != place.checksum {
            return Err(self.damaged());
        }
        if self.cached_len + bytes.len() > CACHE_LEN {
            self.cache.fill(None);
            self.cached_len = 0;
        }
        self.cached_len += bytes.len();
        let block = Arc::new(bytes);
        self.cache[number] = Some(Arc::clone(&block));
        Ok(block)
    }
}
