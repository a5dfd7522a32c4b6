//! The store of context blocks. They are mapped by the chunk on demand, given out and taken back, and never
//! unmapped.

use std::ptr;
use std::sync::OnceLock;

use parking_lot::Mutex;

use otlpprof_core::context::{BLOCK_BYTES, ContextBlock};

/// The number of blocks in a chunk.
const BLOCKS_PER_CHUNK: usize = 1024;
/// The most chunks: 1,048,576 threads with a context at once, in 64 MiB.
const MAX_CHUNKS: usize = 1024;

/// A store of blocks.
#[derive(Debug)]
pub struct Blocks {
    chunks: [OnceLock<&'static [ContextBlock]>; MAX_CHUNKS],
    free: Mutex<Free>,
}

#[derive(Debug)]
struct Free {
    blocks: Vec<&'static ContextBlock>,
    chunk_count: usize,
    most_chunks: usize,
}

/// The blocks of this process.
pub static BLOCKS: Blocks = Blocks::new(MAX_CHUNKS);

impl Blocks {
    const fn new(most_chunks: usize) -> Self {
        Self {
            chunks: [const { OnceLock::new() }; MAX_CHUNKS],
            free: Mutex::new(Free { blocks: Vec::new(), chunk_count: 0, most_chunks }),
        }
    }

    /// Returns an empty block that no other thread has; `None` if the limit is reached, or memory is
    /// exhausted.
    pub fn take(&self) -> Option<&'static ContextBlock> {
        let mut free = self.free.lock();
        if free.blocks.is_empty() {
            let number = free.chunk_count;
            if number >= free.most_chunks {
                return None;
            }
            let chunk = map_chunk()?;
            for block in chunk {
                block.clear();
            }
            let _ = self.chunks[number].set(chunk);
            free.chunk_count += 1;
            free.blocks.extend(chunk.iter().rev());
        }
        free.blocks.pop()
    }

    /// Takes back a block that [`Blocks::take`] returned. No handler may find it, and no thread may write it
    /// any longer.
    pub fn release(&self, block: &'static ContextBlock) {
        block.clear();
        self.free.lock().blocks.push(block);
    }

    /// The number of blocks that have been mapped.
    pub fn made(&self) -> usize {
        self.free.lock().chunk_count * BLOCKS_PER_CHUNK
    }

    /// Every block that has been mapped, given out or not.
    pub fn all(&self) -> impl Iterator<Item = &'static ContextBlock> {
        self.chunks.iter().map_while(|chunk| chunk.get()).copied().flatten()
    }
}

/// Maps a chunk in pages of its own, which live as long as the process.
fn map_chunk() -> Option<&'static [ContextBlock]> {
    let bytes = BLOCKS_PER_CHUNK * BLOCK_BYTES;
    // SAFETY: a fresh anonymous mapping; nothing else refers to it.
    let memory = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    // SAFETY: the page is aligned to 64 bytes, zeros are valid blocks, and the memory is never unmapped.
    (memory != libc::MAP_FAILED)
        .then(|| unsafe { std::slice::from_raw_parts(memory.cast::<ContextBlock>(), BLOCKS_PER_CHUNK) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_bounded_reused_and_empty_when_given_out() {
        let blocks = Box::leak(Box::new(Blocks::new(2)));
        let taken: Vec<_> = std::iter::from_fn(|| blocks.take()).collect();
        assert_eq!(taken.len(), 2 * BLOCKS_PER_CHUNK);
        let mut places: Vec<_> = taken.iter().map(|block| ptr::from_ref(*block)).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), taken.len());
        assert!(places.iter().all(|place| place.addr().is_multiple_of(64)));
        // The block is left in the state of an interrupted write.
        let block = taken[1000];
        // SAFETY: these are the block's own bytes, and no other thread reads them now.
        unsafe { ptr::from_ref(block).cast_mut().cast::<[u8; 64]>().write_volatile([0xee; 64]) };
        blocks.release(block);
        let again = blocks.take().expect("one is free");
        assert_eq!(ptr::from_ref(again), ptr::from_ref(block));
        let record = again.read().expect("ready");
        assert_eq!(record, otlpprof_core::context::ContextRecord { valid: 1, ..Default::default() });
        assert!(blocks.take().is_none());
        assert_eq!(blocks.all().count(), 2 * BLOCKS_PER_CHUNK);
    }
}
